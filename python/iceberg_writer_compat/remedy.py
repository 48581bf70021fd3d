"""Remedies, in SQL, in Python and as commands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """The statements that fix a problem, to be run in this order; empty if there are none.

    Attributes:
        sql: In SQL.
        python: In Python.
        command: As commands; SQL if the command line has no subcommand for it.
    """

    sql: tuple[str, ...]
    python: tuple[str, ...]
    command: tuple[str, ...]

    def __str__(self) -> str:
        """The Python statements, one per line."""
        return "\n".join(self.python)
