"""Runs all parts, or those that are named, and prints what held: `python -m stress --help`."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from stress import clients, disks, heaps, kills, races, rest
from stress.counts import Counts
from stress.judge import Judge

# Which part of the time each one takes; what is made before it begins comes on top.
PARTS = {
    "kills": (kills.run, 0.4),
    "races": (races.run, 0.15),
    "disks": (disks.run, 0.15),
    "heaps": (heaps.run, 0.1),
    "clients": (clients.run, 0.2),
    "rest": (rest.run, 0.1),
    # As long as its kills take.
    "rest-kills": (rest.run_kills, 0.05),
}


def main() -> int:
    """Exit code 0 if all held, 1 if not."""
    parser = argparse.ArgumentParser(prog="make stress", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all if none is named")
    parser.add_argument("--minutes", type=float, default=5, help="how long, about (5)")
    parser.add_argument("--seed", type=int, default=None, help="for moments and amounts")
    parser.add_argument("--files", type=int, default=50_000, help="of the large table (50000)")
    parser.add_argument(
        "--operations", type=int, default=None, help="random operations by clients (by the time)"
    )
    parser.add_argument("--kills", type=int, default=3, help="of the REST server (3)")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    chosen = {name: PARTS[name] for name in arguments.parts or PARTS}
    whole = sum(share for _, share in chosen.values())
    folder = Path(tempfile.mkdtemp(prefix="iceberg-writer-compat-stress-"))
    print(f"seed {seed}, folder {folder}", flush=True)
    counts = Counts()
    judge = Judge(folder / "judge", counts)
    try:
        for name, (run, share) in chosen.items():
            seconds = arguments.minutes * 60 * share / whole
            print(f"\n{name}, {seconds:.0f} s", flush=True)
            part = folder / name
            part.mkdir()
            before = counts.tried.copy()
            run(judge, part, random.Random(f"{seed} {name}"), time.monotonic() + seconds, arguments)
            print(Counts.table(counts.tried - before), flush=True)
    finally:
        judge.close()
    print(f"\n{counts}", flush=True)
    if counts.failures:
        print(f"The tables are left in {folder}.")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


sys.exit(main())
