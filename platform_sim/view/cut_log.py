"""One warning per cut, naming what was cut: the line a person reads in the server's log.

Not here: where the log goes (logging's configuration decides), and the full record (`recorder`).
"""

import logging

from platform_sim.view.event import Event, EventKind

__all__ = ["CutLog"]

_logger = logging.getLogger("outlast.lifetime")


_TEXTS = frozenset(
    {EventKind.CUT, EventKind.UNHELD, EventKind.PROCESS_KILLED, EventKind.STALL, EventKind.WORKER}
)


def _whose(event: Event) -> str:
    return f"request {event.invocation_id}: " if event.invocation_id else ""


class CutLog:
    """Logs each cut, freeze and stall, and each failure of work that no caller will hear of."""

    kinds = _TEXTS | {EventKind.TASK_FAILED, EventKind.APP_FAILED}

    def observe(self, event: Event) -> None:
        """Log the event if it is one a person should see."""
        if event.kind in _TEXTS:
            _logger.warning("%s%s", _whose(event), event.fields["text"])
        elif event.kind is EventKind.TASK_FAILED:
            _logger.warning(
                "request %s: %s failed: %s\n%s",
                event.invocation_id,
                event.fields["name"],
                event.fields["error"],
                event.fields["traceback"],
            )
        elif event.kind is EventKind.APP_FAILED and event.fields["after_response"]:
            _logger.warning(
                "request %s: the app call raised, and its response had been sent: %s\n%s",
                event.invocation_id,
                event.fields["error"],
                event.fields["traceback"],
            )
