"""How a client in a process of its own and the test that started it take turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import datetime, timezone


def step(name: str, table: str, rows: Iterable[object]) -> None:
    """Tells what this client sees in a table after a step, and waits for leave to go on."""
    print(json.dumps({"step": name, "table": table, "rows": in_order(rows)}), flush=True)
    sys.stdin.readline()


def in_order(rows: Iterable[object]) -> list[str]:
    """Rows as any engine gives them, as text that can be compared."""
    return sorted(repr(_plain(row)) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value
