"""Topology: the processes of a local platform, and how each of them is started.

    store (or one that exists already)  receiver        tier 0: the world around the app
    web (the app under its ceiling)     redrive         tier 1: what runs the user's code

The store keeps its data in memory: it is not started again when it dies, because an empty one
would pass for the real one. What is loaded by import string is named in `Programs`.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from platform_sim.host.child import ChildSpec

__all__ = ["HOST", "LOOPBACK", "Programs", "Topology"]

HOST = "127.0.0.1"
LOOPBACK = (HOST, "localhost", "::1")
"""Names of this machine: a store at one of these is local, and no proxy leads to it."""

_CHECK_ROUNDS = 10

_SHUTDOWN_GRACE_S = 2.0  # shorter than the supervisor's patience, so that a stop ends in a cut
_STORE_LOSS = (
    "What it held is gone, so it is not started again; requests get 503 until you stop and start"
)

_RECEIVER_LOSS = "The keys and effects it remembered are gone: a repeat has its effect again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What the processes load, by import string.

    Attributes:
        app: ASGI app, `module:attribute` or `module:factory()`.
        redrive: Async function called on a schedule.
        prepare: Function that prepares a store the environment points at.
    """

    app: str
    redrive: str
    prepare: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """One local platform.

    Attributes:
        programs: What is loaded.
        web_port: Where the app is served.
        receiver_port: Where the scripted receiver listens.
        store_port: Where our own store listens; None: the store at `store_url` is used.
        store_url: The store's address.
        ceiling_s: Seconds of the allowance after the response; None: the profile's.
        cut: What happens at the ceiling.
        profile: Name of the platform profile; None: the host's default.
        redrive_every_s: Seconds from one redrive run to the next.
        redrive_limit_s: Seconds a redrive run may take.
        record: Recording to which web and redrive add what happens.
        environment: All variables of every process.
    """

    programs: Programs
    web_port: int
    receiver_port: int
    store_port: int | None
    store_url: str
    ceiling_s: float | None
    cut: str
    profile: str | None = None
    redrive_every_s: float
    redrive_limit_s: float
    record: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def web_url(self) -> str:
        """The app's address."""
        return f"http://{HOST}:{self.web_port}"

    @property
    def receiver_url(self) -> str:
        """The receiver's address."""
        return f"http://{HOST}:{self.receiver_port}"

    def preparations(self) -> tuple[ChildSpec, ...]:
        """Return what runs once, in this order, when the store is there and nothing uses it yet."""
        prepare = (sys.executable, "-m", "platform_sim.host.call", self.programs.prepare)
        check = ("--endpoint-url", self.store_url, "--rounds", str(_CHECK_ROUNDS))
        steps = []
        if self.store_port is None:
            steps.append(ChildSpec(role="prepare", argv=prepare, environment=self.environment))
        if urlsplit(self.store_url).hostname in LOOPBACK:
            steps.append(self._spec("check", "store_check", check))
        return tuple(steps)

    def store(self) -> ChildSpec | None:
        """Return our own store's process, if there is one; it starts first."""
        if self.store_port is None:
            return None
        options = ("--port", str(self.store_port), "--prepare", self.programs.prepare)
        return self._spec("store", "store_server", options, restart=False, loss=_STORE_LOSS)

    def others(self) -> tuple[ChildSpec, ...]:
        """Return the other processes in the order in which they start."""
        return (self._receiver(), self._web(), self._redrive())

    def _receiver(self) -> ChildSpec:
        options = ("--port", str(self.receiver_port))
        return self._spec("receiver", "receiver_server", options, loss=_RECEIVER_LOSS)

    def _web(self) -> ChildSpec:
        options = ["--app", self.programs.app, "--port", str(self.web_port), "--cut", self.cut]
        options += ["--shutdown-grace-s", f"{_SHUTDOWN_GRACE_S:g}"]
        if self.ceiling_s is not None:
            options += ["--ceiling-s", f"{self.ceiling_s:g}"]
        if self.profile is not None:
            options += ["--profile", self.profile]
        if self.record is not None:
            options += ["--record", str(self.record)]
        return self._spec("web", "server", tuple(options), tier=1)

    def _redrive(self) -> ChildSpec:
        options = (
            *("--call", self.programs.redrive),
            *("--every-s", f"{self.redrive_every_s:g}"),
            *("--limit-s", f"{self.redrive_limit_s:g}"),
            *(() if self.record is None else ("--record", str(self.record))),
        )
        return self._spec("redrive", "cron", options, tier=1)

    def _spec(
        self,
        role: str,
        module: str,
        options: tuple[str, ...],
        *,
        tier: int = 0,
        restart: bool = True,
        loss: str = "",
    ) -> ChildSpec:
        return ChildSpec(
            role=role,
            argv=(sys.executable, "-m", f"platform_sim.host.{module}", *options),
            environment=self.environment,
            tier=tier,
            restart=restart,
            loss=loss,
        )
