"""The sweep's errors: input that cannot be swept, and a trial that does not come to rest."""

__all__ = ["BadSweep", "Stuck", "SweepError"]


class SweepError(Exception):
    """The base of this package's errors."""


class BadSweep(SweepError):
    """What was given cannot be swept; the message says what to give instead."""


class Stuck(SweepError):
    """Time can never pass again in a trial."""
