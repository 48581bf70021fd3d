"""Disks that are full at any moment of a statement.

As root on Linux that is a small file system in memory; else files of the JVM cannot grow beyond
a size.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from iceberg_writer_compat import publish
from stress import model
from stress.judge import Judge

LEAST = 5


class Disk(Protocol):
    """Where tables are, and how little can be written."""

    folder: Path

    @contextmanager
    def full(self, left: int) -> Iterator[None]:
        """Meanwhile only so many bytes can be written."""
        ...


class Mounted:
    """A file system in memory, filled by a file."""

    def __init__(self, folder: Path) -> None:
        """At a folder where it was mounted."""
        self.folder = folder

    @contextmanager
    def full(self, left: int) -> Iterator[None]:
        """As much as is left besides is taken by one file."""
        ballast = self.folder / "ballast"
        free = shutil.disk_usage(self.folder).free
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free - left))
        try:
            yield
        finally:
            ballast.unlink()


class Limited:
    """Any folder, and a limit to the size of files that the JVM writes."""

    def __init__(self, folder: Path, jvm: int) -> None:
        """For the JVM of this process id."""
        self.folder = folder
        self.jvm = jvm

    @contextmanager
    def full(self, left: int) -> Iterator[None]:
        """No file grows beyond what is left."""
        _, hard = resource.prlimit(self.jvm, resource.RLIMIT_FSIZE)
        resource.prlimit(self.jvm, resource.RLIMIT_FSIZE, (left, hard))
        try:
            yield
        finally:
            resource.prlimit(self.jvm, resource.RLIMIT_FSIZE, (hard, hard))


def run(judge: Judge, folder: Path, some: random.Random, end: float, _: argparse.Namespace) -> None:
    """Statements, publishing and VACUUM, each with another amount of room."""
    with _disk(judge, folder) as disk:
        table = disk.folder / "table"
        judge.create(table, publishes=True)
        done = 0
        turn = 0
        while turn < LEAST or time.monotonic() < end:
            turn += 1
            left = some.choice((0, *(some.randrange(1, most) for most in (6000, 40_000, 200_000))))
            kind = type(disk).__name__.lower()
            with judge.counts.judging(f"full disk ({kind})"):
                done = _statement(judge, disk, table, done, left)
                if turn % 4 == 0:
                    _unchanged(judge, disk, table, left)
                judge.published("full disk", table, some, history=False)


def _statement(judge: Judge, disk: Disk, table: Path, done: int, left: int) -> int:
    # OPTIMIZE first puts what it reads where there is no disk to be full, so it is in no hurry.
    with disk.full(left):
        try:
            judge.spark.sql(model.statement(done, table))
            failed = False
        except Exception:
            failed = True
    judge.counts.count(f"full disk: statements {'refused' if failed else 'made'}")
    found = judge.rows(table)
    # What failed may have been committed all the same, where its answer could not be written.
    fitting = [n for n in ((done, done + 1) if failed else (done + 1,)) if model.rows(n) == found]
    if not fitting:
        judge.counts.hold("full disk: rows", found, model.rows(done + (not failed)))
        return done + 1
    return fitting[0]


def _unchanged(judge: Judge, disk: Disk, table: Path, left: int) -> None:
    before = judge.rows(table)
    for what in ("publish", "VACUUM"):
        with disk.full(left):
            try:
                if what == "publish":
                    publish(judge.spark, table, anew=left % 2 == 0)
                else:
                    judge.spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
                judge.counts.count(f"full disk: {what} made")
            except Exception:
                judge.counts.count(f"full disk: {what} refused")
        judge.counts.hold(f"full disk: rows after {what}", judge.rows(table), before)


@contextmanager
def _disk(judge: Judge, folder: Path) -> Iterator[Disk]:
    place = folder / "small"
    place.mkdir()
    mounted = os.geteuid() == 0 and not _run(
        "mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", place
    )
    if not mounted:
        jvm = judge.spark.sparkContext._jvm
        assert jvm is not None
        yield Limited(place, jvm.java.lang.ProcessHandle.current().pid())
        return
    try:
        yield Mounted(place)
    finally:
        _run("umount", place)


def _run(*words: object) -> int:
    return subprocess.run(list(map(str, words)), capture_output=True, check=False).returncode
