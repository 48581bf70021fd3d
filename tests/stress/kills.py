"""SIGKILL at any moment of commits, publishing, VACUUM and rewrites."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from iceberg_writer_compat import enable_iceberg_writer_compat
from stress import model
from stress.judge import Judge, command, environment

KINDS = ("commits", "publishing", "vacuum", "rewrite")

ROWS_TO_REWRITE = 60


def run(judge: Judge, folder: Path, some: random.Random, end: float, _: argparse.Namespace) -> None:
    """Kills one worker after the other, and judges what each has left."""
    tables = {kind: folder / kind for kind in KINDS}
    for kind in ("commits", "publishing", "vacuum"):
        judge.create(tables[kind], publishes=kind == "commits")
    done = dict.fromkeys(KINDS, 0)
    turn = 0
    while turn < len(KINDS) or time.monotonic() < end:
        kind = KINDS[turn % len(KINDS)]
        table = tables[kind]
        if kind == "rewrite":
            table = folder / f"rewrite{turn}"
            _plain(judge, table)
        what = f"SIGKILL over {kind}"
        with judge.counts.judging(what):
            first = [] if kind == "rewrite" else [done[kind]]
            in_flight, said = _kill(kind, folder / f"warehouse{turn}", table, first, some)
            judge.counts.count(f"{what}: in flight" if in_flight else f"{what}: had ended")
            if kind == "rewrite":
                _judge_rewrite(judge, table, some, what)
            else:
                done[kind] = _judge_statements(judge, table, done[kind], said, some, what, kind)
        turn += 1


def _plain(judge: Judge, table: Path) -> None:
    spark = judge.spark
    # Files of timestamps in 96 bits, as Delta alone writes them: none of them can stay.
    spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta AS SELECT id, CAST(id AS STRING) AS name, "
        f"timestamp_seconds(id) AS t FROM range(0, {ROWS_TO_REWRITE}, 1, 20)"
    )


@contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    """A worker; what is left of it is killed at the end."""
    with subprocess.Popen(
        command(*words),  # type: ignore[arg-type]
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            # The JVM is in the group of the process that started it.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def output(process: subprocess.Popen[str]) -> IO[str]:
    """What a worker says."""
    assert process.stdout is not None
    return process.stdout


def _kill(
    kind: str, warehouse: Path, table: Path, more: list[int], some: random.Random
) -> tuple[bool, list[str]]:
    with started(kind, warehouse, table, *more) as worker:
        begun = [output(worker).readline().strip(), output(worker).readline().strip()]
        if begun[0] != "ready":
            raise RuntimeError(f"the worker did not start: {begun}")
        time.sleep(some.uniform(0, 4))
        in_flight = worker.poll() is None
        if in_flight:
            os.killpg(worker.pid, signal.SIGKILL)
        said = [*begun[1:], *(line.strip() for line in output(worker))]
    return in_flight and "done" not in said, said


def _judge_statements(
    judge: Judge,
    table: Path,
    before: int,
    said: list[str],
    some: random.Random,
    what: str,
    kind: str,
) -> int:
    """What was answered is there, at most the next one beside it; answers how many are done."""
    answered = max([before, *(int(line) + 1 for line in said if line.isdigit())])
    found = judge.rows(table)
    fitting = [n for n in (answered, answered + 1) if model.rows(n) == found]
    judge.counts.count("statements answered before a kill", answered - before)
    if not fitting:
        judge.counts.hold(f"{what}: rows after {answered} statements", found, model.rows(answered))
    judge.published(what, table, some, history=kind != "vacuum")
    # OPTIMIZE is done or not, and nobody can tell by the rows: done again it does no harm.
    return fitting[0] if fitting else answered


def _judge_rewrite(judge: Judge, table: Path, some: random.Random, what: str) -> None:
    """The table is as it was or as it was to become, and a second call completes it."""

    def rows() -> list[tuple[object, ...]]:
        found = judge.spark.sql(f"SELECT id, name, unix_seconds(t) FROM delta.`{table}`").collect()
        return sorted(tuple(row) for row in found)

    wanted = [(i, str(i), i) for i in range(ROWS_TO_REWRITE)]
    judge.counts.hold(f"{what}: rows", rows(), wanted)
    enable_iceberg_writer_compat(judge.spark, table, rewrite=True)
    judge.counts.hold(f"{what}: rows after a second call", rows(), wanted)
    judge.published_as_it_is(what, table)
