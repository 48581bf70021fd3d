"""What was tried, and what did not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Counts:
    """Tallies, and failures in words."""

    def __init__(self) -> None:
        """Nothing was tried yet."""
        self.tried: Counter[str] = Counter()
        self.failures: list[str] = []

    def count(self, what: str, number: int = 1) -> None:
        """Adds to a tally."""
        self.tried[what] += number

    def fail(self, what: str) -> None:
        """Notes what does not hold, and says it at once."""
        self.failures.append(what)
        print(f"  FAILED {what}", flush=True)

    def hold(self, what: str, found: object, wanted: object) -> None:
        """Notes a failure if two things differ."""
        if found != wanted:
            self.fail(f"{what}: found {_short(found)} instead of {_short(wanted)}")

    @contextmanager
    def judging(self, what: str) -> Iterator[None]:
        """An error is a failure, and ends nothing else."""
        before = len(self.failures)
        try:
            yield
        except Exception as error:
            self.fail(f"{what}: {type(error).__name__} {str(error)[:800]}")
        self.count(f"{what}: {'held' if len(self.failures) == before else 'FAILED'}")

    @staticmethod
    def table(tried: Counter[str]) -> str:
        """Tallies, one a line."""
        return "\n".join(f"{number:>7}  {what}" for what, number in sorted(tried.items()))

    def __str__(self) -> str:
        """The verdict."""
        if not self.failures:
            return "All held."
        count = f"{len(self.failures)} did NOT hold:"
        return "\n".join([count, *(f"  {failure}" for failure in self.failures)])


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 400 else f"{text[:200]} … {text[-200:]}"
