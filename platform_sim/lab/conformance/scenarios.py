"""Which recorded scenario is claimed, by which app, and which is not, for what reason.

Rules: a script of the recorded runtime is played by one app of ours. What ASGI cannot say, or an
asyncio program cannot know, is not claimed; nor is what the emulator deliberately does otherwise.
The reasons hold for the kind of trace, so they are found for unseen ones as well.

Not here: the apps (`apps`).
"""

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Final

from platform_sim.lab.conformance.apps import background, departures, scheduled, streams
from platform_sim.lab.conformance.trace import Leaving, Source, Trace, Word, read_trace

__all__ = ["APPS", "app_for", "reason_not_claimed", "recorded", "script_of"]

App = Callable[..., Awaitable[None]]

APPS: Final[Mapping[str, App]] = {
    "s01_wait_after_response": background.one_wait,
    "s02_two_overlapping": background.two_waits,
    "s03_reject_after_response": background.rejects_after,
    "s04_reject_before_response": background.rejects_before,
    "s05_late_call_kept_alive": background.late_call,
    "s07_foreign_ctx": background.foreign_context,
    "s11_disconnect_before_headers_nosignal": departures.held,
    "s11_disconnect_before_headers_signal": departures.held_signal,
    "s12_disconnect_before_headers_nowait_nosignal": departures.unheld,
    "s12_disconnect_before_headers_nowait_signal": departures.unheld_signal,
    "s13_disconnect_mid_stream_nosignal": streams.pumped,
    "s13_disconnect_mid_stream_signal": streams.pumped_signal,
    "s14_stream_holds_context": streams.made,
    "s15_native_stream_passthrough": streams.handed_over,
    "s16_throw_after_wait": background.throws,
    "s18_floating": background.floating,
    "s20_many": background.five_thousand,
    "s21_long_45s": background.long_work,
    "s22_long_after_disconnect": departures.long_held,
    "s24_import_wait_until": background.imported,
    "s25_scheduled_ok": scheduled.succeeds,
    "s25_scheduled_throw": scheduled.throws,
    "s25_scheduled_noretry": scheduled.no_retry,
    "s25_scheduled_long40": scheduled.long,
    "s25_scheduled_waitfail": scheduled.work_fails,
    "s30_native_stream_long_wait": streams.handed_over_long,
}
"""The app for each script of the recorded runtime."""

_FIN_UNSEEN = (
    "the recorded runtime did not see the FIN of a client that closes before the answer; an ASGI "
    "server does, and says http.disconnect, as the platform's own rule has it"
)
_HALF_CLOSE = (
    "a half-close and a close are the same FIN; an ASGI server says http.disconnect for both, and "
    "cannot tell that the client still reads"
)
_HANG = (
    "the recorded runtime saw that nothing could ever wake the code; an asyncio program cannot "
    "know that, and waits until its limit"
)
_QUEUE = "a queue consumer is no ASGI app, and the emulator has none; s25 shows the same lifetime"

_SCRIPTS_NOT_CLAIMED: Final[Mapping[str, str]] = {
    "s17_passthrough_on_exception": (
        "passThroughOnException asks the server in front of the app to answer in its place; ASGI "
        "has nothing to ask it with"
    ),
    "s23_non_promise_args": (
        "JavaScript makes a promise of any value and binds methods to their object; in Python what "
        "cannot be awaited is a TypeError, and a detached function is whole"
    ),
}
_FIN_MATTERS = frozenset(
    {
        "s11_disconnect_before_headers_signal",
        "s12_disconnect_before_headers_nowait_nosignal",
        "s12_disconnect_before_headers_nowait_signal",
        "s22_long_after_disconnect",
    }
)
_TRACES = files("platform_sim.lab.conformance") / "traces"


def recorded() -> list[Trace]:
    """Read every trace that comes with the package, by name."""
    found = sorted((each for each in _TRACES.iterdir()), key=lambda each: each.name)
    return [
        read_trace(each.read_bytes(), each.name) for each in found if each.name.endswith(".jsonl")
    ]


def script_of(trace: Trace) -> str:
    """Return the script a trace was recorded from: its path says so, else its scenario."""
    for request in trace.of(Source.CLIENT, Word.REQUEST_SENT):
        script: str = request.fields["path"].split("/")[1].partition("?")[0]
        if script in APPS or script in _SCRIPTS_NOT_CLAIMED:
            return script
    return trace.scenario


def app_for(trace: Trace) -> App | None:
    """Return the app that plays a trace's script; None when there is none."""
    return APPS.get(script_of(trace))


def reason_not_claimed(trace: Trace) -> str | None:
    """Return why the emulator does not claim to do as this trace; None when it does."""
    script = script_of(trace)
    if script in _SCRIPTS_NOT_CLAIMED:
        return _SCRIPTS_NOT_CLAIMED[script]
    if trace.of(Source.DRIVER, Word.QUEUED):
        return _QUEUE
    if trace.of(Source.CLIENT, Word.HALF_CLOSE) or _left(trace, Leaving.HALF_CLOSE):
        return _HALF_CLOSE
    if _hung(trace):
        return _HANG
    if script in _FIN_MATTERS and _left(trace, Leaving.CLOSE):
        return _FIN_UNSEEN
    return None


def _left(trace: Trace, how: Leaving) -> bool:
    left = trace.of(Source.CLIENT, Word.DISCONNECT)
    return any(event.fields["how"] == how for event in left)


def _hung(trace: Trace) -> bool:
    """Tell whether the runtime ended it because its code would never go on."""
    if trace.of(Source.WORKER, "handler:await-forever"):
        return True
    return any(
        "had hung" in str(text)
        for report in trace.of(Source.TAIL, Word.REPORTED)
        for text in report.fields.get("exceptions", ())
    )
