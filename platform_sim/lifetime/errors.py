"""The errors of a request's lifetime: each means a broken expectation of the app or its operator.

Not here: cuts. A cut is what the platform does, not an error.
"""

__all__ = ["BadProfile", "IllegalHappening", "LifetimeError", "NoLiveInvocation"]


class LifetimeError(Exception):
    """Base of all errors raised by `platform_sim.lifetime`."""


class NoLiveInvocation(LifetimeError):
    """A lifetime function was called where no request is alive. The app's fault."""


class BadProfile(LifetimeError):
    """A profile's numbers contradict each other, or no profile has this name."""


class IllegalHappening(LifetimeError):
    """Something happened to a request that is impossible in its state. The emulator's bug."""
