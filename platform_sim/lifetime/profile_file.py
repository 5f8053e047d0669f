"""A profile of one's own: a TOML file that extends one of the platforms.

    extends = "workers"
    allowance_s = 10.0
    cut = "kill"
    scheduled_limit_s = "unbounded"

Rules: `extends` names what is not overridden; `name` is the file's unless given; a limit may be
`"unbounded"` where it may be None. A rule that is overridden cites the file as its source. Every
error names the file, the key and what is allowed there.

Not here: the platforms (`profile`).
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from platform_sim.lifetime.errors import BadProfile
from platform_sim.lifetime.limits import Profile
from platform_sim.lifetime.profile import PROFILES, find_profile
from platform_sim.lifetime.rules import (
    ClockStart,
    CutMode,
    DisconnectRule,
    FloatingRule,
    ShutdownRule,
    Topic,
)

__all__ = ["load_profile", "profile_from", "resolve_profile"]

_UNBOUNDED: Final = "unbounded"
_WORDS: Final[Mapping[str, type[StrEnum]]] = {
    "clock_start": ClockStart,
    "on_disconnect": DisconnectRule,
    "floating": FloatingRule,
    "cut": CutMode,
    "shutdown": ShutdownRule,
}
_LIMITS: Final = ("allowance_s", "answer_limit_s", "scheduled_limit_s")
_SECONDS: Final = ("cancel_grace_s", "shutdown_grace_s")
_TEXTS: Final = ("name", "summary")
_KEYS: Final = ("extends", *_TEXTS, *_WORDS, *_LIMITS, *_SECONDS)
_TOPICS: Final[Mapping[str, tuple[Topic, ...]]] = {
    "clock_start": (Topic.CLOCK, Topic.SHARED),
    "on_disconnect": (Topic.DISCONNECT,),
    "floating": (Topic.FLOATING,),
    "cut": (Topic.UNSETTLED,),
    "cancel_grace_s": (Topic.UNSETTLED,),
    "shutdown": (Topic.SHUTDOWN,),
    "shutdown_grace_s": (Topic.SHUTDOWN,),
    "allowance_s": (Topic.ALLOWANCE,),
    "answer_limit_s": (Topic.ANSWER,),
    "scheduled_limit_s": (Topic.SCHEDULED,),
}


def resolve_profile(name: str) -> Profile:
    """Return the profile that a name, or the path of a TOML file, stands for.

    Raises:
        BadProfile: There is none of that name, or the file cannot be used.
    """
    if name.endswith(".toml"):
        return load_profile(Path(name))
    return find_profile(name)


def load_profile(path: Path) -> Profile:
    """Read a profile from a TOML file.

    Raises:
        BadProfile: It cannot be read, is no TOML, or says what no profile can.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadProfile(f"profile {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadProfile(f"profile {path} is no TOML: {error}") from error
    return profile_from(content, source=str(path), name=path.stem)


def profile_from(content: Mapping[str, Any], *, source: str, name: str) -> Profile:
    """Make a profile from what a file says.

    Args:
        content: Keys and values.
        source: Where they are from, for messages and as the source of what they override.
        name: The profile's, unless the content has one.

    Raises:
        BadProfile: A key or value is none that a profile has.
    """
    for key in content:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise BadProfile(f"{source}: unknown key {key}: {hint}Keys are: {', '.join(_KEYS)}")
    extended = content.get("extends")
    if not isinstance(extended, str) or extended not in PROFILES:
        raise BadProfile(
            f"{source}: extends must name one of {', '.join(PROFILES)}, not {_shown(extended)}"
        )
    base = PROFILES[extended]
    changes = {key: _value(key, content[key], source) for key in content if key != "extends"}
    said = ", ".join(key for key in changes if key not in _TEXTS) or "nothing changed"
    topics = {topic for key in changes for topic in _TOPICS.get(key, ())}
    changes.setdefault("name", name)
    changes.setdefault("summary", f"{base.name} with {said}, from {source}")
    try:
        return replace(base, **changes, sources={**base.sources, **dict.fromkeys(topics, source)})
    except BadProfile as error:
        raise BadProfile(f"{source}: {error}") from error


def _value(key: str, value: Any, source: str) -> Any:
    if key in _WORDS:
        words = _WORDS[key]
        if value in list(words):
            return words(value)
        allowed = f"one of {', '.join(words)}"
    elif key in _TEXTS:
        if isinstance(value, str) and value:
            return value
        allowed = "a text"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif key in _LIMITS:
        if value == _UNBOUNDED:
            return None
        allowed = f'a number of seconds or "{_UNBOUNDED}"'
    else:
        allowed = "a number of seconds"
    raise BadProfile(f"{source}: {key} must be {allowed}, not {_shown(value)}")


def _shown(value: Any) -> str:
    return "left out" if value is None else repr(value)
