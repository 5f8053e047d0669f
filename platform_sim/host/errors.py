"""What can go wrong when processes are started; every message names the cause and the remedy."""

import sys
import traceback

__all__ = ["ChildError", "LaunchError", "OptionError", "PortError", "explain"]


class LaunchError(Exception):
    """Something could not be started; nothing that was started is left behind."""


class OptionError(LaunchError):
    """An option has a value that cannot work."""

    def __init__(self, option: str, problem: str, remedy: str) -> None:
        super().__init__(f"{option}: {problem}. {remedy}.")
        self.option = option


class PortError(LaunchError):
    """A port is in use, or may not be used by this user."""

    def __init__(self, option: str, port: int, reason: str) -> None:
        super().__init__(
            f"port {port} cannot be used ({reason}): choose another with {option},"
            f" or {option} 0 for any free one. Nothing was started."
        )
        self.option = option
        self.port = port


class ChildError(LaunchError):
    """A child process did not become ready.

    Args:
        role: Which one.
        reason: What it did instead.
        tail: The last lines it wrote to stderr.
    """

    def __init__(self, role: str, reason: str, tail: tuple[str, ...]) -> None:
        shown = "".join(f"\n  {line}" for line in tail) or "\n  (it wrote nothing to stderr)"
        super().__init__(f"{role} {reason}. Its last words:{shown}")
        self.role = role
        self.tail = tail


def explain(error: Exception) -> None:
    """Say on stderr why something could not be started: the user's own traceback, one sentence."""
    if error.__cause__ is not None and not isinstance(error.__cause__, OSError):
        traceback.print_exception(error.__cause__)
    print(f"outlast: {error}", file=sys.stderr)
