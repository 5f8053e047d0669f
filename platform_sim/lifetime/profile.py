"""The platforms, as data: what each grants a request, and where that is written down.

Rules: what a platform leaves to its users to set (a function's timeout) stands here at the
platform's default or largest value, and its summary says so. What no source says is said to be
unsaid.

Not here: what the words mean (`rules`), profiles of one's own (`profile_file`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.limits import Profile
from platform_sim.lifetime.rules import (
    ClockStart,
    CutMode,
    DisconnectRule,
    FloatingRule,
    ShutdownRule,
    Topic,
)

__all__ = [
    "CLOUD_RUN",
    "GENERIC",
    "LAMBDA",
    "PROFILES",
    "VERCEL",
    "WORKERS",
    "ClockStart",
    "CutMode",
    "DisconnectRule",
    "FloatingRule",
    "Profile",
    "ShutdownRule",
    "Topic",
    "find_profile",
]

_CLOUDFLARE: Final = "https://developers.cloudflare.com/workers"
_WORKERD: Final = "workerd 6552d999 src/workerd"
_WORKERS_CONTEXT: Final = f"{_CLOUDFLARE}/runtime-apis/context/#waituntil"
_WORKERS_LIMITS: Final = f"{_CLOUDFLARE}/platform/limits/"

WORKERS: Final = Profile(
    name="workers",
    summary="30 s after the response ends or the client leaves, shared by all wait_until calls",
    sources={
        Topic.CLOCK: f"{_WORKERD}/io/worker-entrypoint.c++:413-443",
        Topic.ALLOWANCE: f"{_WORKERS_CONTEXT}; {_WORKERD}/io/io-context.c++:620-631",
        Topic.SHARED: f"{_WORKERS_CONTEXT}; {_WORKERD}/io/io-context.c++:632-634",
        Topic.UNSETTLED: f"{_WORKERS_CONTEXT}; {_WORKERD}/io/io-context.c++:622-631",
        Topic.FLOATING: _WORKERS_CONTEXT,
        Topic.DISCONNECT: _WORKERS_LIMITS,
        Topic.ANSWER: _WORKERS_LIMITS,
        Topic.SCHEDULED: f"{_WORKERS_LIMITS}; {_WORKERD}/io/worker-entrypoint.c++:811-828",
        Topic.SHUTDOWN: f"{_WORKERS_LIMITS} (30 s for requests in flight at a runtime update)",
    },
    allowance_s=30.0,
    scheduled_limit_s=900.0,
    shutdown_grace_s=30.0,
)

_LAMBDA_RUNTIME: Final = "https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment"
_LAMBDA_AFTER: Final = (
    "https://aws.amazon.com/blogs/compute/"
    "running-code-after-returning-a-response-from-an-aws-lambda-function/"
)
_LAMBDA_STREAMS: Final = (
    "https://docs.aws.amazon.com/lambda/latest/dg/configuration-response-streaming.html"
)

LAMBDA: Final = Profile(
    name="lambda",
    summary="900 s for answer and work together (set --ceiling-s to your function's timeout), with "
    "an extension that lets wait_until hold off the freeze",
    sources={
        Topic.CLOCK: f"{_LAMBDA_RUNTIME}.html (no phase of its own after the answer)",
        Topic.ALLOWANCE: f"{_LAMBDA_RUNTIME}.html (function timeout, at most 900 s)",
        Topic.SHARED: f"{_LAMBDA_RUNTIME}.html (the timeout bounds function and extensions)",
        Topic.UNSETTLED: f"{_LAMBDA_RUNTIME}.html (a timeout resets the environment)",
        Topic.FLOATING: f"{_LAMBDA_RUNTIME}.html; {_LAMBDA_AFTER}",
        Topic.DISCONNECT: f"{_LAMBDA_STREAMS} (not interrupted when the client leaves)",
        Topic.ANSWER: f"{_LAMBDA_RUNTIME}.html",
        Topic.SCHEDULED: f"{_LAMBDA_RUNTIME}.html (an invocation like any other)",
        Topic.SHUTDOWN: f"{_LAMBDA_RUNTIME}.html (500 ms with an internal extension)",
    },
    allowance_s=900.0,
    clock_start=ClockStart.REQUEST,
    on_disconnect=DisconnectRule.IGNORED,
    floating=FloatingRule.FREEZES,
    cut=CutMode.KILL,
    scheduled_limit_s=900.0,
    shutdown_grace_s=0.5,
)

_VERCEL: Final = "https://vercel.com/docs/functions"
_VERCEL_API: Final = f"{_VERCEL}/functions-api-reference"

VERCEL: Final = Profile(
    name="vercel",
    summary="300 s for answer and work together; registered work is cancelled when they end",
    sources={
        Topic.CLOCK: f"{_VERCEL_API}/vercel-functions-package",
        Topic.ALLOWANCE: f"{_VERCEL}/limitations (300 s unless set; quoted second-hand)",
        Topic.SHARED: f"{_VERCEL_API}/vercel-functions-package",
        Topic.UNSETTLED: f"{_VERCEL_API}/vercel-functions-package (promises are cancelled)",
        Topic.FLOATING: f"{_VERCEL_API} (work not in waitUntil or after is lost)",
        Topic.DISCONNECT: f"{_VERCEL_API} (implied for functions without supportsCancellation)",
        Topic.ANSWER: f"{_VERCEL}/limitations (504; quoted second-hand)",
        Topic.SCHEDULED: f"{_VERCEL}/limitations (an invocation like any other)",
        Topic.SHUTDOWN: "https://vercel.com/changelog/"
        "vercel-functions-now-support-graceful-shutdown",
    },
    allowance_s=300.0,
    clock_start=ClockStart.REQUEST,
    on_disconnect=DisconnectRule.IGNORED,
    scheduled_limit_s=300.0,
    shutdown_grace_s=0.5,
)

_RUN: Final = "https://cloud.google.com/run/docs"
_RUN_TIMEOUT: Final = f"{_RUN}/configuring/request-timeout"

CLOUD_RUN: Final = Profile(
    name="cloud-run",
    summary="nothing after the response (request-based billing): what is left is frozen, and goes "
    "on while a later request is served",
    sources={
        Topic.CLOCK: f"{_RUN}/tips/general",
        Topic.ALLOWANCE: f"{_RUN}/tips/general",
        Topic.SHARED: f"{_RUN}/container-contract (CPU while any request is in flight)",
        Topic.UNSETTLED: f"{_RUN}/tips/general (resumes on the next request)",
        Topic.FLOATING: f"{_RUN}/tips/general",
        Topic.DISCONNECT: f"not said by {_RUN}/container-contract",
        Topic.ANSWER: f"{_RUN_TIMEOUT} (300 s unless set; 504; the container goes on)",
        Topic.SCHEDULED: f"{_RUN_TIMEOUT} (a scheduled call is a request)",
        Topic.SHUTDOWN: f"{_RUN}/container-contract",
    },
    allowance_s=0.0,
    on_disconnect=DisconnectRule.IGNORED,
    floating=FloatingRule.FREEZES,
    cut=CutMode.FREEZE,
    answer_limit_s=300.0,
    scheduled_limit_s=300.0,
)

_ASYNCIO: Final = "https://docs.python.org/3/library/asyncio-task.html"

GENERIC: Final = Profile(
    name="generic",
    summary="a plain server process: work runs to its end unless a ceiling is set",
    sources={
        Topic.CLOCK: f"{_ASYNCIO} (matters only with a ceiling)",
        Topic.ALLOWANCE: f"{_ASYNCIO} (a task runs until it ends)",
        Topic.SHARED: f"{_ASYNCIO} (matters only with a ceiling)",
        Topic.UNSETTLED: f"{_ASYNCIO} (matters only with a ceiling)",
        Topic.FLOATING: f"{_ASYNCIO}#asyncio.create_task",
        Topic.DISCONNECT: "https://asgi.readthedocs.io/en/latest/specs/www.html#disconnect-receive",
        Topic.ANSWER: "https://www.uvicorn.org/settings/#timeouts (none for an answer)",
        Topic.SCHEDULED: f"{_ASYNCIO} (a task runs until it ends)",
        Topic.SHUTDOWN: f"10 s as in {_RUN}/container-contract",
    },
    allowance_s=None,
    on_disconnect=DisconnectRule.IGNORED,
    floating=FloatingRule.HOLDS,
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in (WORKERS, LAMBDA, VERCEL, CLOUD_RUN, GENERIC)}
)


def find_profile(name: str) -> Profile:
    """Return the profile of this name.

    Raises:
        BadProfile: There is none; the message lists those there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise BadProfile(f"no profile {name!r}; there are: {', '.join(PROFILES)}") from None
