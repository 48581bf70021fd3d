"""Remedies, in SQL, in Python and as commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RemedyKind = Literal[
    "properties",
    "default",
    "constraint",
    "nulls",
    "type",
    "rows",
    "look",
    "rename",
    "purge",
    "drop-feature",
    "drop-feature-later",
    "copy",
    "enable",
    "metadata",
    "change",
]


@dataclass(frozen=True)
class Remedy:
    """The statements that fix a problem, to be run in this order; empty if there are none.

    Attributes:
        sql: In SQL.
        python: In Python.
        command: As commands; SQL if the command line has no subcommand for it.
        kind: What they do; `change` if it is none of the others.
    """

    sql: tuple[str, ...]
    python: tuple[str, ...]
    command: tuple[str, ...]
    kind: RemedyKind = "change"

    def __str__(self) -> str:
        """The Python statements, one per line."""
        return "\n".join(self.python)
