"""Three JVMs at one table: two that write and publish, one of them by calls, and stock Delta."""

from __future__ import annotations

import argparse
import random
import time
from contextlib import ExitStack
from pathlib import Path

from stress.judge import Judge, in_order
from stress.kills import output, started


def run(judge: Judge, folder: Path, some: random.Random, end: float, _: argparse.Namespace) -> None:
    """Lets them race once, as long as there is time, and judges what came of it."""
    table = folder / "table"
    judge.create(table, publishes=True)
    with judge.counts.judging("race of three JVMs"):
        seconds = max(20.0, end - time.monotonic())
        workers = (
            ("race", folder / "w1", table, 0, seconds, "hook"),
            ("race", folder / "w2", table, 1_000_000, seconds, "calls"),
            ("stock", folder / "w3", table, seconds),
        )
        with ExitStack() as stack:
            running = [stack.enter_context(started(*worker)) for worker in workers]
            said = [[line.strip() for line in output(worker)] for worker in running]
        for lines in said:
            ends = (lines[:1], lines[-1:])
            judge.counts.hold("race: begin and end of a worker", ends, (["ready"], ["end"]))
        rows = [
            (int(n), way) for n, way in _answered(said[0], "hook") + _answered(said[1], "calls")
        ]
        judge.counts.hold("race: rows", judge.rows(table), in_order(list(rows)))
        judge.counts.count("race: rows appended", len(rows))
        judge.counts.count("race: calls of publish", said[1].count("published"))
        tried = said[2][1:-1]
        judge.counts.count("race: writes of stock Delta, refused", tried.count("refused"))
        judge.counts.hold("race: writes of stock Delta", set(tried), {"refused"})
        judge.published("race", table, some)


def _answered(lines: list[str], way: str) -> list[tuple[str, str]]:
    return [(line, way) for line in lines if line.isdigit()]
