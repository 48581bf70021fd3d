"""Converts reports to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from iceberg_writer_compat.exceptions import UnknownReportFormatError

FORMAT = 1

_T = TypeVar("_T")


def require_format(value: Mapping[str, Any]) -> None:
    """Fails if a report has another format than this package reads."""
    found = value.get("format") if isinstance(value, Mapping) else None
    if found != FORMAT or isinstance(found, bool):
        raise UnknownReportFormatError(
            f"This is a report of format {found!r}, but this package reads format {FORMAT}.\n"
            "Use the jar and the Python package of the same version."
        )


def dumps(value: Mapping[str, Any]) -> str:
    """Dicts and lists as JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@cache
def types_of(kind: Any) -> dict[str, Any]:
    """The types of the attributes of a dataclass."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if not f.name.startswith("_")}


@overload
def decode(kind: type[_T], value: Any, where: str) -> _T: ...
@overload
def decode(kind: Any, value: Any, where: str) -> Any: ...
def decode(kind: Any, value: Any, where: str) -> Any:
    """Reads a value of a type; unknown keys are ignored."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        types = types_of(kind)
        missing = [name for name in types if name not in value]
        if missing:
            raise ValueError(f"{where} has no {missing[0]}.")
        return kind(**{n: decode(t, value[n], f"{where}.{n}") for n, t in types.items()})
    if origin is tuple and isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(decode(arguments[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin in (Union, UnionType):
        present = next(argument for argument in arguments if argument is not NoneType)
        return None if value is None else decode(present, value, where)
    if origin is Literal and value in arguments:
        return value
    if kind is datetime and isinstance(value, str):
        # Python 3.10 does not parse the suffix Z.
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    if kind in (str, int, bool) and type(value) is kind:
        return value
    raise ValueError(f"{where} is {value!r}.")


def loads(kind: type[_T], text: str) -> _T:
    """Reads the JSON in which a result leaves the JVM."""
    return decode(kind, json.loads(text), "the result")


def encode(value: Any) -> Any:
    """A value as dicts, lists, text and numbers."""
    if is_dataclass(value):
        kind: Any = type(value)
        return {name: encode(getattr(value, name)) for name in types_of(kind)}
    if isinstance(value, tuple):
        return [encode(entry) for entry in value]
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return value
