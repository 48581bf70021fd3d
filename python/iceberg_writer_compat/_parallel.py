"""Work on many tables side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.util import inheritable_thread_target

_T = TypeVar("_T")

# Most of the work is done by the JVM, and part of it waits for storage.
DEFAULT = 4


def require(parallelism: int) -> int:
    """The number of tables at a time; fails if it is none."""
    if parallelism < 1:
        raise ValueError("parallelism must be at least 1.")
    return parallelism


class Pool:
    """Threads with the session and the local properties of the thread that created them."""

    def __init__(self, spark: SparkSession, parallelism: int) -> None:
        self._threads = ThreadPoolExecutor(parallelism, "tables")
        self._inheriting = inheritable_thread_target(spark)

    def map(self, step: Callable[[str], _T], names: Iterable[str]) -> list[_T]:
        """The result of each step, in order."""
        return list(self._threads.map(self._inheriting(step), names))

    def as_they_come(
        self, step: Callable[[str], _T], names: Sequence[str]
    ) -> Iterator[tuple[int, _T]]:
        """The result of each step when it is there, with the number of its name."""
        inheriting = self._inheriting(step)
        numbers = {self._threads.submit(inheriting, name): i for i, name in enumerate(names)}
        for done in as_completed(numbers):
            # What has been handed on is not kept: there may be thousands of reports.
            yield numbers.pop(done), done.result()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_error: object) -> None:
        # After Ctrl-C, waiting steps are not started, and running steps finish.
        self._threads.shutdown(wait=True, cancel_futures=True)
