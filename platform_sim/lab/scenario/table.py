"""What every table of a scenario file has in common, and the kinds of numbers in them.

Rules: an unknown key is an error; a number is finite, and never below what makes sense; everything
has an upper limit, so that a file written by anybody comes to an end.
"""

from typing import Annotated, TypeAlias

import msgspec

__all__ = [
    "MOST_REQUESTS",
    "MOST_RUNS",
    "Count",
    "Instant",
    "Name",
    "Number",
    "Positive",
    "Range",
    "Replicas",
    "Seconds",
    "Table",
    "Whole",
    "Word",
]

MOST_REQUESTS = 10_000
"""Requests in one scenario, rows and repeats counted out."""

MOST_RUNS = 20_000
"""Redrive runs in one scenario."""

_LONGEST_S = 31_622_400.0  # a year with its leap day
_MOST_REPLICAS = 50

Instant: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)]
"""Seconds since the world began."""

Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=-_LONGEST_S, le=_LONGEST_S)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=_LONGEST_S)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_REQUESTS)]
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_MOST_REPLICAS)]
Replicas: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=_MOST_REPLICAS)]
Word: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,60}$")]
"""A name that stands in addresses."""
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A TOML table in which an unknown key is an error."""


class Range(Table, frozen=True, kw_only=True):
    """A number between two bounds, both included; either may be left out."""

    min: float | None = None
    max: float | None = None


Number: TypeAlias = int | float | Range
