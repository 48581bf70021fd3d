"""Iceberg's library and Delta at one table: random operations in turn, and commits at once.

The two suites of Scala that `make test` runs in a short form, as long as there is time.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import time
from pathlib import Path

from stress.judge import Judge

PROJECT = Path(__file__).parents[2]

SUITES = "*RandomCommitsSuite *RacingClientsSuite"

# On a machine that has nothing else to do.
SECONDS_PER_OPERATION = 0.4


def run(
    judge: Judge, _: Path, some: random.Random, end: float, arguments: argparse.Namespace
) -> None:
    """Runs them once."""
    seconds = max(30.0, end - time.monotonic())
    races = int(min(60.0, seconds / 2))
    operations = arguments.operations or int((seconds - races) / SECONDS_PER_OPERATION)
    seed = some.randrange(1 << 40)
    options = f"-Dseed={seed} -Doperations={operations} -Dseconds={races}"
    with judge.counts.judging(f"Iceberg clients and Delta ({options})"):
        ended = subprocess.run(
            [PROJECT / "build" / "sbt", f"spark41/testOnly {SUITES} -- {options}"],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        told = [
            line
            for line in ended.stdout.splitlines()
            if re.search(r"FAILED|seed \d+|commits by|average|Tests:", line)
        ]
        print("\n".join(told), flush=True)
        judge.counts.hold("clients: exit code of the suites", ended.returncode, 0)
        judge.counts.count("clients: random operations", operations)
