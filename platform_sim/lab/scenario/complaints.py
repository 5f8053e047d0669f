"""What is wrong with a value, in words for who wrote the file: the key, and what is allowed there.

Pure. The decoder says where it stopped, but not under which name of a table with free names, nor
which words or keys it would have taken; both are found out here.
"""

import difflib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

__all__ = ["complaint", "named"]

_AT = " - at `"
_UNKNOWN_KEY = "Object contains unknown field `"
_ANY_NAME = "[...]"
_NUMBERS = ("`int | float | object | null`", "`int | float | object`")


def complaint(document: Mapping[str, Any], kind: type, error: Exception) -> str:
    """Return what a decoder's error means, as `key: message`.

    Args:
        document: What was decoded.
        kind: What it was decoded into.
        error: What the decoder said.
    """
    text, _, path = str(error).partition(_AT)
    path = path.rstrip("`")
    if _ANY_NAME in path:
        path = _with_names(document, kind, str(error), path)
    if text.startswith(_UNKNOWN_KEY):
        wrong = text.removeprefix(_UNKNOWN_KEY).rstrip("`")
        said = named(f"{text}{_AT}{path}`" if path else text)
        return said + _instead(wrong, list(_keys_at(kind, path)))
    words = list(_words_at(kind, path)) if "enum value" in text else []
    allowed = f"; there are: {', '.join(words)}" if words else ""
    return named(f"{text}{allowed}{_AT}{path}`" if path else f"{text}{allowed}")


def named(message: str, under: str = "") -> str:
    """Turn the decoder's message (`... - at `$.requests[0].at_s``) into `key: message`."""
    text, _, path = message.partition(_AT)
    path = path.rstrip("`")
    for numbers in _NUMBERS:
        text = text.replace(numbers, "a number, or a range like `{ min = 1 }`")
    if path.startswith("key` in `"):
        path, text = path.removeprefix("key` in `"), f"this name cannot be used: {text}"
    where = (under + path.removeprefix("$")).removeprefix(".")
    if text.startswith(_UNKNOWN_KEY):
        field = text.removeprefix(_UNKNOWN_KEY).rstrip("`")
        return f"{where}.{field}: there is no such key".removeprefix(".")
    return f"{where}: {text}" if where else text


def _with_names(document: Mapping[str, Any], kind: type, said: str, path: str) -> str:
    """Put the name that is wrong in the place of each `[...]`."""
    before, _, after = path.partition(_ANY_NAME)
    table = _value_at(document, before)
    for name, value in table.items():
        alone = _with_value_at(document, before, {name: value})
        try:
            msgspec.convert(alone, kind)
        except msgspec.ValidationError as error:
            if str(error) == said:
                whole = f"{before}.{name}{after}"
                return _with_names(alone, kind, said, whole) if _ANY_NAME in after else whole
    return path


def _steps(path: str) -> list[str | int]:
    parts = path.removeprefix("$").replace("[", ".[").split(".")
    return [int(part[1:-1]) if part.startswith("[") else part for part in parts if part]


def _value_at(document: Any, path: str) -> Any:
    for step in _steps(path):
        document = document[step]
    return document


def _with_value_at(document: Any, path: str, value: Any) -> Any:
    def put(inside: Any, steps: list[str | int]) -> Any:
        if not steps:
            return value
        step, *rest = steps
        changed: Any = dict(inside) if isinstance(inside, dict) else list(inside)
        changed[step] = put(inside[step], rest)
        return changed

    return put(document, _steps(path))


def _instead(wrong: str, keys: Sequence[str]) -> str:
    """Say which key may have been meant, or which there are."""
    close = difflib.get_close_matches(wrong, keys, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; there are: {', '.join(keys)}" if keys else ""


def _kinds_at(kind: Any, path: str) -> list[Any]:
    """Return the types that may stand at a path of a type."""
    kinds = [kind]
    for step in _steps(path):
        kinds = [inner for each in kinds for inner in _inside(each, step)]
    return kinds


def _keys_at(kind: Any, path: str) -> Iterator[str]:
    """Yield the keys of the table that stands at a path of a type."""
    for each in _kinds_at(kind, path):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            yield from each.__struct_encode_fields__


def _words_at(kind: Any, path: str) -> Iterator[str]:
    """Yield the words of the closed set that stands at a path of a type."""
    for each in _kinds_at(kind, path):
        if isinstance(each, type) and issubclass(each, Enum):
            yield from (str(member.value) for member in each)
        elif typing.get_origin(each) is typing.Literal:
            yield from (str(word) for word in typing.get_args(each))


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    """Yield the types that may stand at one step inside a type, unions taken apart."""
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        found = [f.type for f in msgspec.structs.fields(kind) if f.name == step]
    elif origin is None:
        found = []
    else:
        arguments = typing.get_args(kind)
        found = [arguments[0] if isinstance(step, int) else arguments[-1]]
    for each in found:
        yield from _alternatives(each)


def _alternatives(kind: Any) -> Iterator[Any]:
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        yield from _alternatives(typing.get_args(kind)[0])
    elif origin in {typing.Union, types.UnionType}:
        for each in typing.get_args(kind):
            yield from _alternatives(each)
    else:
        yield kind
