"""The settings that a folder has for the command line, so that nobody repeats `--conf`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_OWN = "iceberg-writer-compat"


def settings_of_file(profile: str | None, folder: Path | None = None) -> dict[str, str]:
    """The session's settings in `iceberg-writer-compat.toml`, or else in `pyproject.toml`.

    A profile's settings come before those outside of profiles.
    """
    path, tables = _found(folder or Path())
    for key in tables.keys() - {"conf", "profile"}:
        raise click.UsageError(f"{path} has {key!r}, but knows only 'conf' and 'profile'.")
    settings = _settings(path, tables, "conf")
    if profile is not None:
        profiles = _table(path, tables, "profile")
        if profile not in profiles:
            known = ", ".join(sorted(profiles)) or "none"
            raise click.UsageError(f"{path} has no profile {profile!r}. It has: {known}.")
        settings |= _settings(path, _table(path, profiles, profile), "conf")
    return settings


def _found(folder: Path) -> tuple[Path, dict[str, Any]]:
    own, project = folder / f"{_OWN}.toml", folder / "pyproject.toml"
    if own.is_file():
        return own, _read(own)
    if project.is_file():
        return project, _table(project, _table(project, _read(project), "tool"), _OWN)
    return own, {}


def _read(path: Path) -> dict[str, Any]:
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is not valid TOML: {error}") from error
    return tables


def _table(path: Path, tables: dict[str, Any], key: str) -> dict[str, Any]:
    found = tables.get(key, {})
    if not isinstance(found, dict):
        raise click.UsageError(f"{path}: {key!r} is {found!r}, but has to be a table.")
    return found


def _settings(path: Path, tables: dict[str, Any], key: str) -> dict[str, str]:
    settings = dict(_flat(_table(path, tables, key)))
    for name, value in settings.items():
        if not isinstance(value, str | bool | int | float):
            raise click.UsageError(f"{path}: {name!r} is {value!r}, but has to be one value.")
    return {name: _text(value) for name, value in settings.items()}


def _flat(tables: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """The values with their dotted names, as TOML takes an unquoted dot for a table in a table."""
    return [
        entry
        for key, value in tables.items()
        for entry in (
            _flat(value, f"{before}{key}.") if isinstance(value, dict) else [(before + key, value)]
        )
    ]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
