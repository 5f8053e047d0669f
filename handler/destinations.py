"""Destinations: the named receivers an operation can be sent to.

An operation names a destination and never carries a URL. Destinations come from a TOML file
(`OUTLAST_DESTINATIONS`), from single environment variables (`OUTLAST_DESTINATION_<NAME>_URL` and
its siblings), or from the program: a user's own async function is a destination too.

What a destination says about itself decides what may be done when an outcome is unknown: it is
`idempotent` (a repeat under the same key within `dedupe_window_s` has no second effect), it has a
`lookup_url` (it can be asked), or neither, and then a person must decide.
"""

import base64
import inspect
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from standardwebhooks import Webhook

from handler.budget import Deadline
from handler.errors import ConfigurationError
from handler.outcome import Outcome

__all__ = ["Deliver", "Destination", "Operation", "destinations_from", "read_destinations"]

_FILE = "OUTLAST_DESTINATIONS"
_SINGLE = "OUTLAST_DESTINATION_"
_Statuses = tuple[Annotated[int, msgspec.Meta(ge=100, le=599)], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is to be delivered: the same identity and the same bytes in every attempt.

    Attributes:
        operation_id: The caller's intent, also the idempotency key.
        destination: The destination's name.
        payload: The first body, byte for byte.
        attempt: The number of this attempt over the operation's life, from 1.
        timestamp_s: When this attempt was made, epoch seconds.
    """

    operation_id: str
    destination: str
    payload: bytes
    attempt: int
    timestamp_s: int


Deliver = Callable[[Operation, Deadline], Awaitable[Outcome]]


class Destination(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One receiver.

    Attributes:
        url: Where the payload is POSTed (http or https).
        idempotent: A repeat under the same key has no second effect there.
        dedupe_window_s: How long the receiver remembers a key, in seconds.
        lookup_url: Asked with GET what became of a key; `{id}` stands for the operation id.
        secret: Signs requests as Standard Webhooks says (`whsec_...`).
        attempt_limit_s: Overrides the settings' attempt limit here.
        delivered_on, rejected_on, undelivered_on, uncertain_on, in_progress_on: Status overrides.
        deliver: A user's own async function, in place of the URL.
    """

    url: str = ""
    idempotent: bool = False
    dedupe_window_s: Annotated[float, msgspec.Meta(gt=0)] = 86_400.0
    lookup_url: str | None = None
    secret: str | None = None
    attempt_limit_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    delivered_on: _Statuses = ()
    rejected_on: _Statuses = ()
    undelivered_on: _Statuses = ()
    uncertain_on: _Statuses = ()
    in_progress_on: _Statuses = ()
    deliver: Deliver | None = None

    def __post_init__(self) -> None:
        """Refuse what could never be delivered to."""
        if self.deliver is not None and not _is_async(self.deliver):
            raise ValueError("`deliver` must be an async function: async def deliver(...)")
        if (self.deliver is None) == (not self.url):
            raise ValueError("needs a `url` (or, from the program, `deliver`), and not both")
        for field, value in (("url", self.url), ("lookup_url", self.lookup_url)):
            if value and not _is_http(value):
                raise ValueError(f"`{field}` must be an http or https address, got {value!r}")
        if self.secret is not None:
            _check_secret(self.secret)
        named = [status for statuses in self._sets().values() for status in statuses]
        if len(named) != len(set(named)):
            raise ValueError("one status stands in two of the `..._on` lists")

    def __repr__(self) -> str:
        """Return the fields without the secret, for logs and tracebacks."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__} | {
            "secret": None if self.secret is None else "..."
        }
        return f"Destination({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def status_overrides(self) -> Mapping[int, Outcome]:
        """Return what each overridden status means here."""
        return {status: outcome for outcome, group in self._sets().items() for status in group}

    def _sets(self) -> Mapping[Outcome, _Statuses]:
        return {
            Outcome.DELIVERED: self.delivered_on,
            Outcome.REJECTED: self.rejected_on,
            Outcome.UNDELIVERED: self.undelivered_on,
            Outcome.UNCERTAIN: self.uncertain_on,
            Outcome.IN_PROGRESS: self.in_progress_on,
        }


def _is_async(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004  an object's own async __call__ counts
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _is_http(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_secret(secret: str) -> None:
    # The library decodes leniently and would sign with other bytes than the receiver checks with.
    text = secret.removeprefix("whsec_")
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        Webhook(secret)
    except Exception as error:
        raise ValueError("`secret` must be base64, with or without `whsec_` before it") from error


def destinations_from(environment: Mapping[str, str]) -> Mapping[str, Destination]:
    """Read destinations from the file named by the environment and from single variables.

    Raises:
        ConfigurationError: The file or a variable cannot be used.
    """
    found: dict[str, Destination] = {}
    path = environment.get(_FILE)
    if path:
        found.update(read_destinations(Path(path)))
    single: dict[str, dict[str, str | list[str]]] = {}
    for name in sorted(environment):
        if name.startswith(_SINGLE):
            destination, field = _split_variable(name)
            value = environment[name]
            many = field.endswith("_on")
            single.setdefault(destination, {})[field] = (
                [item.strip() for item in value.split(",")] if many else value
            )
    for destination, fields in single.items():
        found[destination] = _destination(f"{_SINGLE}{destination.upper()}_*", fields)
    return found


def _split_variable(name: str) -> tuple[str, str]:
    rest = name.removeprefix(_SINGLE).lower()
    for field in Destination.__struct_fields__:
        if rest.endswith(f"_{field}") and len(rest) > len(field) + 1:
            # `lookup_url` ends in `url` too: the longer field wins.
            if field == "url" and rest.endswith("_lookup_url"):
                continue
            return rest.removesuffix(f"_{field}"), field
    raise ConfigurationError(
        name, "it names no field of a destination", f"End it in one of {_field_names()}"
    )


def read_destinations(path: Path) -> Mapping[str, Destination]:
    """Read a TOML file with one table `[destinations.NAME]` for each destination.

    Raises:
        ConfigurationError: The file is missing, is not TOML, or a field is unusable.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            _FILE, f"{path} cannot be read ({error.strerror})", "Name an existing TOML file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            _FILE, f"{path} is not TOML ({error})", "Mend that line"
        ) from error
    tables = document.get("destinations", {})
    if not isinstance(tables, dict) or set(document) - {"destinations"}:
        raise ConfigurationError(
            _FILE, f"{path} holds more than destinations", "Use tables [destinations.NAME] only"
        )
    return {name: _destination(f"destinations.{name}", table) for name, table in tables.items()}


def _destination(where: str, fields: Any) -> Destination:
    try:
        if isinstance(fields, dict) and "deliver" in fields:
            raise ValueError("`deliver` is a function and can only be given by the program")
        return msgspec.convert(fields, Destination, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigurationError(where, str(error), f"Fields are {_field_names()}") from error


def _field_names() -> str:
    return ", ".join(name for name in Destination.__struct_fields__ if name != "deliver")
