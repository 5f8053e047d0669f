"""The local platform: which programs it runs, and how the handler lives under a scaled ceiling.

The product's import strings are known here and nowhere else of `platform_sim`. What is a share of a
pass shrinks with its budget; one machine has one clock.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from handler.errors import ConfigurationError
from handler.settings import Settings, settings_from
from platform_sim.host.errors import LaunchError
from platform_sim.host.options import LocalOptions
from platform_sim.host.receiver_server import PLAIN
from platform_sim.host.topology import LOOPBACK, Programs, Topology

__all__ = [
    "HANDLER",
    "handler_environment",
    "local_topology",
    "store_environment",
    "write_destinations",
]

HANDLER = Programs(
    app="handler.app:from_environment()",
    redrive="handler.redrive:run_from_environment",
    prepare="storage.table:prepare_from_environment",
)
"""The product's own app, scheduled function and table."""

DEMO_OPTIONS = LocalOptions(
    ceiling_s=3.0, budget_s=2.5, redrive_every_s=2.0, web_port=0, store_port=0, receiver_port=0
)
"""The demo's platform: a tenth of the full scale, on free ports."""

_LOCAL_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_AWS_SETUP = frozenset(
    {
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    }
)
_DEDUPE_WINDOW_S = 86_400
_REDRIVE_SLACK = 1.2  # over its own budget, before the schedule cancels a run
_FULL_SCALE = Settings()


def handler_environment(budget_s: float) -> dict[str, str]:
    """Return handler settings for passes of `budget_s`, scaled from the defaults.

    Everything that is a share of a pass or of the pause between passes shrinks with the budget, so
    that a scaled run behaves like the full one. One machine has one clock: a small skew margin will
    do. The reserve does not shrink below what a local write needs.
    """
    full = _FULL_SCALE
    scale = budget_s / full.budget_s
    seconds = {
        "BUDGET_S": budget_s,
        "RESERVE_S": min(full.reserve_s, max(0.25, full.reserve_s * scale), budget_s / 2),
        "ATTEMPT_LIMIT_S": min(full.attempt_limit_s, full.attempt_limit_s * scale),
        "LEASE_S": 1.8 * budget_s,
        "SKEW_MARGIN_S": min(full.skew_margin_s, budget_s / 5),
        "BACKOFF_BASE_S": full.backoff_base_s * min(1, scale),
        "BACKOFF_CAP_S": full.backoff_cap_s * min(1, scale),
        "ROW_BACKOFF_BASE_S": full.row_backoff_base_s * min(1, scale),
        "ROW_BACKOFF_CAP_S": full.row_backoff_cap_s * min(1, scale),
        "REDRIVE_BUDGET_S": full.redrive_budget_s * scale,
        "MIN_PASS_S": full.min_pass_s * min(1, scale),
    }
    return {f"OUTLAST_{name}": f"{value:g}" for name, value in seconds.items()}


def store_environment(url: str, environ: Mapping[str, str], *, ours: bool) -> dict[str, str]:
    """Return the user's variables with those that lead boto3 to the store.

    Args:
        url: The store's address.
        environ: What the user has set.
        ours: Whether we started it; a local store of ours sees nothing of the user's AWS set-up.
    """
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    has_credentials = any(name in environ for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"))
    kept = {name: value for name, value in environ.items() if not ours or name not in _AWS_SETUP}
    direct = [environ.get("NO_PROXY") or environ.get("no_proxy") or "", *LOOPBACK]
    no_proxy = ",".join(filter(None, direct))
    return {
        **kept,
        **(_LOCAL_CREDENTIALS if ours or not has_credentials else {}),
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }


def write_destinations(path: Path, receiver_url: str) -> None:
    """Write the handler's destinations: the local receiver, with and without idempotency."""
    lines = (
        "[destinations.receiver]",
        f"url = {json.dumps(f'{receiver_url}/hooks/receiver')}",
        "idempotent = true",
        f"dedupe_window_s = {_DEDUPE_WINDOW_S}",
        "",
        f"[destinations.{PLAIN}]",
        f"url = {json.dumps(f'{receiver_url}/hooks/{PLAIN}')}",
        "",
    )
    path.write_text("\n".join(lines), encoding="utf-8")


def local_topology(
    options: LocalOptions,
    environ: Mapping[str, str],
    folder: Path,
    *,
    record: Path | None = None,
) -> Topology:
    """Return the processes of a local platform for the product or a user's own app.

    Args:
        options: Checked options.
        environ: The user's variables; their own `OUTLAST_*` win over what is derived here.
        folder: Where the destinations file is written; must outlive the processes.
        record: Recording to which web and redrive add what happens.

    Raises:
        LaunchError: A port that was asked for, or a variable of the user's, cannot be used.
    """
    derived = handler_environment(options.budget_in_force_s)
    own = {name: value for name, value in environ.items() if name.startswith("OUTLAST_")}
    # an option that was given wins over its variable; click has already read the variable
    merged = {**derived, **own, "OUTLAST_BUDGET_S": derived["OUTLAST_BUDGET_S"]}
    try:
        settings = settings_from(merged)
    except ConfigurationError as unusable:
        raise LaunchError(f"{unusable}.") from unusable
    programs = HANDLER if options.app is None else replace(HANDLER, app=options.app)
    topology = options.topology(
        programs,
        redrive_limit_s=settings.redrive_budget_s * _REDRIVE_SLACK,
        record=record,
    )
    if "OUTLAST_DESTINATIONS" not in own:
        path = folder / "destinations.toml"
        write_destinations(path, topology.receiver_url)
        merged["OUTLAST_DESTINATIONS"] = str(path)
    store = store_environment(topology.store_url, environ, ours=topology.store_port is not None)
    return replace(topology, environment={**store, **merged})
