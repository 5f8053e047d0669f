"""The scenario's errors: a file that is none, and a world that does not come to rest."""

__all__ = ["BadScenario", "Stuck"]


class BadScenario(ValueError):
    """The file is no scenario; the message names the key and what is allowed there."""


class Stuck(RuntimeError):
    """The world turns and turns, and its time does not go on."""
