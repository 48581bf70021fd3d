"""What mends a fault, as each way to work with tables takes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """Statements that mend a fault, to be run in this order; none where nothing can be run.

    Attributes:
        sql: In SQL; where SQL has no statement for it, the call in Python or the command.
        python: In Python.
        command: At the command line; SQL where the command line has no verb for it.
    """

    sql: tuple[str, ...]
    python: tuple[str, ...]
    command: tuple[str, ...]

    def __str__(self) -> str:
        """What it is in Python, one statement a line."""
        return "\n".join(self.python)
