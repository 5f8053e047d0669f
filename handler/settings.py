"""The handler's settings: every number with its unit, default and environment name.

Each field is read from `OUTLAST_<FIELD>`; nothing else sets one. Values and the relations between
them are checked at start-up, with the field and the remedy in the message. Destinations have
their own module; the store's address is botocore's (`AWS_ENDPOINT_URL_DYNAMODB`, region,
credentials).
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from handler.errors import ConfigurationError

__all__ = ["PREFIX", "Settings", "settings_from"]

PREFIX = "OUTLAST_"

_Seconds = Annotated[float, msgspec.Meta(ge=0)]
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator can set. Field names end in their units.

    Raises:
        ConfigurationError: Two values contradict each other, or one is not finite.
    """

    # One pass. 25 s leaves a margin under the 30 s that Workers grants after the response.
    budget_s: _Positive = 25.0
    reserve_s: _Seconds = 1.0
    attempt_limit_s: _Positive = 20.0
    backoff_base_s: _Seconds = 0.5
    backoff_cap_s: _Seconds = 10.0
    backoff_jitter: _Share = 1.0
    max_retry_after_s: _Seconds = 86_400.0
    max_inline_passes: _Count = 100
    max_connections: _Count = 100

    # One accept.
    accept_budget_s: _Positive = 2.0
    max_payload_bytes: Annotated[int, msgspec.Meta(ge=1, le=380_000)] = 262_144
    max_key_chars: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 255
    lifetime: Literal["strict", "lenient"] = "strict"

    # Claims. 45 s outlasts a pass of 25 s; firing early is safe, so the size is only a trade.
    lease_s: _Seconds | None = None
    skew_margin_s: _Seconds = 5.0
    heartbeat_every_s: _Positive | None = None

    # Redrive.
    redrive_budget_s: _Positive = 50.0
    redrive_batch: _Count = 50
    redrive_concurrency: _Count = 10
    redrive_per_destination: _Count = 5
    min_pass_s: _Seconds = 2.0
    row_backoff_base_s: _Seconds = 10.0
    row_backoff_cap_s: _Seconds = 3600.0
    row_backoff_jitter: _Share = 0.2
    max_passes: _Count = 50
    max_age_s: _Positive = 259_200.0
    dedupe_margin_s: _Seconds = 30.0

    # The store.
    table: Annotated[str, msgspec.Meta(min_length=3, max_length=255)] = "outlast"
    shard_count: Annotated[int, msgspec.Meta(ge=1, le=100)] = 4
    retention_s: _Positive = 1_209_600.0
    store_call_limit_s: _Positive = 2.0
    store_threads: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 16

    def __post_init__(self) -> None:
        """Check what no single field can say."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigurationError(
                    env_name(name), f"{value} is not a finite number", "Set one"
                )
        if self.reserve_s >= self.budget_s:
            raise ConfigurationError(
                env_name("reserve_s"),
                f"the reserve ({self.reserve_s} s) leaves no budget ({self.budget_s} s)",
                f"Set it below {env_name('budget_s')}",
            )
        if self.redrive_budget_s < self.min_pass_s + self.reserve_s:
            raise ConfigurationError(
                env_name("redrive_budget_s"),
                f"a run of {self.redrive_budget_s} s could start no pass",
                f"Set it to at least {env_name('min_pass_s')} ({self.min_pass_s} s) "
                f"and {env_name('reserve_s')} ({self.reserve_s} s) together",
            )

    @property
    def lease_in_force_s(self) -> float:
        """The lease of a claim in seconds: as set, or 1.8 budgets (45 s for 25 s)."""
        return 1.8 * self.budget_s if self.lease_s is None else self.lease_s


def env_name(field: str) -> str:
    """Return the environment variable that sets a field."""
    return PREFIX + field.upper()


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Read settings from environment variables.

    Raises:
        ConfigurationError: A value is unusable; the message names the variable and the remedy.
    """
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        text = environment.get(env_name(field.name))
        if text is not None and text.strip():
            given[field.name] = _read(field, text.strip())
    return Settings(**given)


def _read(field: msgspec.structs.FieldInfo, text: str) -> Any:
    try:
        return msgspec.convert(text, field.type, strict=False)
    except msgspec.ValidationError as error:
        default = "a value derived from the budget" if field.default is None else field.default
        raise ConfigurationError(
            env_name(field.name), f"{text!r} cannot be used ({error})", f"The default is {default}"
        ) from error
