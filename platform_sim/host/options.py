"""Options of a local platform: what people may set, checked before anything is started.

A value that cannot work is an error that names option and remedy. One that works and may surprise
is a warning: a budget above the ceiling is exactly what some people want to see.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from platform_sim.host.errors import OptionError
from platform_sim.host.ports import choose_ports
from platform_sim.host.topology import HOST, Programs, Topology
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.profile import WORKERS, CutMode, Profile
from platform_sim.lifetime.profile_file import resolve_profile

__all__ = ["DEFAULTS", "LocalOptions", "checked"]

_SHARE_OF_CEILING = 25 / 30  # the margin of a 25 s budget under a 30 s ceiling, kept when scaled
_BUDGET_CAP_S = 25.0
_MAX_PORT = 65_535
_CUTS = tuple(mode.value for mode in CutMode)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """What people may set.

    Attributes:
        ceiling_s: Seconds of allowance after the response; None: the profile's (30 s).
        budget_s: Seconds granted to a pass; None: 5/6 of the ceiling, at most 25 s.
        redrive_every_s: Seconds from one redrive run to the next.
        cut: What happens at the ceiling.
        app: The ASGI app to run, by import string; None: the handler.
        store: Address of an existing DynamoDB; None: a local one is started.
        profile: Name of the platform profile, or path of a TOML file; None: the reference profile.
        web_port, store_port, receiver_port: Where they listen; 0: any free port.
    """

    ceiling_s: float | None = None
    budget_s: float | None = None
    redrive_every_s: float = 15.0
    cut: str = "cancel"
    app: str | None = None
    store: str | None = None
    profile: str | None = None
    web_port: int = 8787
    store_port: int = 8788
    receiver_port: int = 8789

    @property
    def platform(self) -> Profile:
        """The profile meant.

        Raises:
            BadProfile: There is none of that name.
        """
        return WORKERS if self.profile is None else resolve_profile(self.profile)

    @property
    def ceiling_in_force_s(self) -> float | None:
        """Seconds of the allowance, as set or as the profile has it; None: unbounded."""
        return self.platform.allowance_s if self.ceiling_s is None else self.ceiling_s

    @property
    def budget_in_force_s(self) -> float:
        """Seconds granted to a pass, as set or derived from the ceiling."""
        if self.budget_s is not None:
            return self.budget_s
        ceiling_s = self.ceiling_in_force_s
        # without an allowance no pass runs inline; the budget is redrive's then
        return min(_BUDGET_CAP_S, (ceiling_s or math.inf) * _SHARE_OF_CEILING)

    def topology(
        self, programs: Programs, *, redrive_limit_s: float, record: Path | None = None
    ) -> Topology:
        """Settle the ports and return what to start; the environment is still to be filled in.

        Raises:
            PortError: A port that was asked for cannot be used.
        """
        wanted = {"--web-port": self.web_port, "--receiver-port": self.receiver_port}
        if self.store is None:
            wanted["--store-port"] = self.store_port
        ports = choose_ports(wanted, host=HOST)
        store_port = ports.get("--store-port")
        return Topology(
            programs=programs,
            web_port=ports["--web-port"],
            receiver_port=ports["--receiver-port"],
            store_port=store_port,
            store_url=self.store or f"http://{HOST}:{store_port}",
            ceiling_s=self.ceiling_s,
            cut=self.cut,
            profile=self.profile,
            redrive_every_s=self.redrive_every_s,
            redrive_limit_s=redrive_limit_s,
            record=record,
        )


DEFAULTS = LocalOptions()


def checked(options: LocalOptions) -> list[str]:
    """Check every option and return warnings for people.

    Raises:
        OptionError: A value cannot work.
    """
    _check_seconds("--ceiling-s", options.ceiling_s, "Give seconds above 0, such as 30")
    _check_seconds("--budget-s", options.budget_s, "Give seconds above 0, such as 25")
    _check_seconds("--redrive-every-s", options.redrive_every_s, "Give seconds, such as 15")
    if options.cut not in _CUTS:
        raise OptionError("--cut", f"there is no {options.cut!r}", f"Use one of {', '.join(_CUTS)}")
    if options.store is not None and not options.store.startswith(("http://", "https://")):
        raise OptionError(
            "--store", f"{options.store!r} is no address", "Give one like http://127.0.0.1:8000"
        )
    try:
        ceiling_s = options.ceiling_in_force_s
    except BadProfile as unknown:
        raise OptionError("--profile", str(unknown), "Name one of these") from unknown
    for option, port in (
        ("--web-port", options.web_port),
        ("--store-port", options.store_port),
        ("--receiver-port", options.receiver_port),
    ):
        if not 0 <= port <= _MAX_PORT:
            raise OptionError(option, f"{port} is no port", f"Use 0 (any free one) to {_MAX_PORT}")
    budget_s = options.budget_in_force_s
    if not ceiling_s or budget_s < ceiling_s:
        return []
    warning = (
        f"--budget-s {budget_s:g} is not below the ceiling of {ceiling_s:g} s: a pass after the"
        " response gets no more than the ceiling leaves it"
    )
    return [warning]


def _check_seconds(option: str, value: float | None, remedy: str) -> None:
    if value is not None and not 0 < value < math.inf:
        raise OptionError(option, f"{value:g} s cannot work", remedy)
