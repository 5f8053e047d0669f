"""`outlast profiles`: what the emulated platforms grant, in words and with sources.

Exit codes: 0 shown, 2 there is no such profile.
"""

import json
from typing import Annotated

import typer

from platform_sim.host.errors import OptionError
from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.explain import as_data, explain
from platform_sim.lifetime.profile import PROFILES
from platform_sim.lifetime.profile_file import resolve_profile

__all__ = ["profiles"]


def profiles(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="One profile, or the path of a TOML file that extends one."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
) -> None:
    """List the platform profiles, or explain one: each of its rules, and where it is written."""
    if name is None:
        chosen = list(PROFILES.values())
    else:
        try:
            chosen = [resolve_profile(name)]
        except BadProfile as error:
            raise OptionError("NAME", str(error), "Name one, or a .toml file") from error
    if as_json:
        print(json.dumps({"profiles": [as_data(profile) for profile in chosen]}))
        return
    if name is None:
        width = max(map(len, PROFILES))
        for profile in chosen:
            print(f"{profile.name:<{width}}  {profile.summary}")
        print("\n`outlast profiles NAME` explains one: each of its rules, and where it is written.")
        return
    (profile,) = chosen
    print(f"{profile.name}: {profile.summary}\n")
    for each in explain(profile):
        print(f"{each.topic:<10}  {each.rule}")
        print(f"{'':<10}  {each.source}")
