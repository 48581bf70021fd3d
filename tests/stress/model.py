"""What a worker does by number, and the rows there are after it."""

from __future__ import annotations

from pathlib import Path


def statement(number: int, folder: Path) -> str:
    """One commit: of ten, six append, two update, one deletes, and one changes no row."""
    table = f"delta.`{folder}`"
    match number % 10:
        case 3 | 7:
            return f"UPDATE {table} SET name = 'u{number}' WHERE id = {number - 1}"
        case 5:
            return f"DELETE FROM {table} WHERE id = {number - 3}"
        case 9:
            return f"OPTIMIZE {table}"
        case _:
            return f"INSERT INTO {table} VALUES ({number}, 'i{number}')"


def rows(count: int) -> list[tuple[object, ...]]:
    """The rows after the statements 0 to `count` - 1."""
    found: dict[int, str] = {}
    for number in range(count):
        match number % 10:
            case 3 | 7:
                found[number - 1] = f"u{number}"
            case 5:
                found.pop(number - 3)
            case 9:
                pass
            case _:
                found[number] = f"i{number}"
    return sorted(found.items(), key=repr)
