"""A served warehouse under load: many clients on many tables, many on one; and SIGKILL.

Clients are threads of processes beside the server. What they were told is compared with what Delta,
pyiceberg and the catalog have at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable

import oracle
from iceberg_writer_compat import verify
from stress.judge import Judge, by_pyiceberg, environment, in_order

TABLES = 8

CLIENTS = 16

HOT_CLIENTS = 8

# What becomes of an append to a table that has gone on.
LATE = ("on-top", "refused")

DELETES = 0.3

MOST_SECONDS_TO_WAIT = 120

# Python runs one thread of a process at a time.
PROCESSES = 2

SERVE = "from iceberg_writer_compat.cli import main; main()"

# The line of the log for a commit: status and milliseconds, from the request's arrival.
COMMIT = re.compile(r" POST /v1/namespaces/[^/]+/tables/[^/ ]+ (\d+) (\d+) ms")

ANY = re.compile(r" (?:GET|POST|HEAD|DELETE) /\S* (\d+) \d+ ms")


class Server:
    """`iceberg-writer-compat serve`, which can be killed and started again."""

    def __init__(self, folder: Path, tables: dict[str, Path]) -> None:
        """It is not running yet."""
        self._folder = folder
        self._tables = tables
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self.port = 0
        self.lines: list[str] = []
        folder.mkdir()

    @property
    def uri(self) -> str:
        """Where it listens, also after it was killed."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        command = [sys.executable, "-c", SERVE, "serve", "--port", str(self.port)]
        command += ["--conf", "spark.driver.memory=1g", "--conf", "spark.ui.enabled=false"]
        for name, folder in self._tables.items():
            command += ["--path", f"{name}={folder}"]
        log = self._folder / "server.log"
        with log.open("a", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command,
                env=environment(),
                cwd=self._folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._process = process
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said.startswith("Iceberg REST catalog at "):
            raise RuntimeError(f"the server did not start: {said}\n{log.read_text()[-2000:]}")
        self.port = int(said.rsplit(":", 1)[1])
        self._reader = threading.Thread(target=self._read, args=(process.stdout,))
        self._reader.start()

    def _read(self, output: Iterator[str]) -> None:
        self.lines.extend(output)

    def await_commits(self, number: int) -> None:
        """Waits until so many more were made."""
        before = self._commits()
        end = time.monotonic() + MOST_SECONDS_TO_WAIT
        while self._commits() < before + number and time.monotonic() < end:
            time.sleep(0.05)

    def _commits(self) -> int:
        found = (COMMIT.search(line) for line in list(self.lines))
        return sum(match is not None and match[1] == "200" for match in found)

    def end(self, number: signal.Signals) -> int:
        """Sends a signal, to the whole group if it is SIGKILL, and waits until nothing is left."""
        process = self._process
        assert process is not None and self._reader is not None
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        elif process.poll() is None:
            process.send_signal(number)
        code = process.wait()
        # The JVM has the other end of the pipe: it is closed when the JVM is gone.
        self._reader.join()
        self._process = None
        return code

    def close(self) -> None:
        """Kills it if it still runs."""
        if self._process is not None:
            self.end(signal.SIGKILL)

    def memory(self) -> tuple[int, int]:
        """Resident memory of the JVM, and what of its heap is live, in MB."""
        java = self._java()
        status = Path(f"/proc/{java}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) >> 10, self.live(java)

    def cpu_seconds(self) -> float:
        """What the JVM has used, and the programs that it has started."""
        stat = Path(f"/proc/{self._java()}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(ticks) for ticks in stat[11:15]) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def live(java: int) -> int:
        """What is left of the heap after a full collection, in MB."""
        for command in ("GC.run", "GC.heap_info"):
            told = subprocess.run(
                [_jcmd(), str(java), command], capture_output=True, text=True, check=True
            ).stdout
        # The first line is the young or the whole heap, by the collector; others are parts of it.
        used = [int(n) for n in re.findall(r"^ \S.*?total \d+K, used (\d+)K", told, re.MULTILINE)]
        return sum(used) >> 10

    def _java(self) -> int:
        assert self._process is not None
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    name, rest = (entry / "stat").read_text().rsplit(")", 1)
                except OSError:
                    continue
                if int(rest.split()[2]) == self._process.pid and name.endswith("(java"):
                    return int(entry.name)
        raise RuntimeError("the server has no JVM")


def _jcmd() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("jcmd", path=f"{home}/bin" if home else None)
    if found is None:
        raise RuntimeError("jcmd of a JDK is needed")
    return found


class Told:
    """What clients were told."""

    def __init__(self) -> None:
        """Nothing."""
        self.changes: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []
        self.seconds = 0.0

    def rows(self, table: str) -> list[tuple[object, ...]]:
        """The rows that a table has to have."""
        rows: dict[int, str] = {}
        removed = set()
        for change in self.changes:
            if change["table"] == table:
                rows |= dict.fromkeys(change["added"], f"c{change['client']}")
                removed |= set(change["removed"])
        return in_order([(n, name) for n, name in rows.items() if n not in removed])

    def snapshots(self, table: str) -> set[int]:
        """The ids of the snapshots of all commits that a client was told of."""
        return {n for c in self.changes if c["table"] == table for n in c["snapshots"]}


@contextmanager
def clients(
    told: Told,
    uri: str,
    first: int,
    count: int,
    deletes: float,
    seed: str,
    tables: Sequence[str],
    late: str = "on-top",
) -> Iterator[None]:
    """Lets clients work while the block runs, and then waits for the last answer of each.

    What becomes of `late` appends to a table that has gone on is one of `LATE`.
    """
    each = count // PROCESSES
    with ExitStack() as stack:
        running = []
        for n in range(PROCESSES):
            words = [uri, first + n * each, each, deletes, late, seed, *tables]
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "stress.rest_clients", *map(str, words)],
                    env=environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            running.append(process)
        for process in running:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("the clients did not start")
        begin = time.monotonic()
        yield
        for process in running:
            assert process.stdin is not None
            process.stdin.close()
        for process in running:
            assert process.stdout is not None
            lines = [json.loads(line) for line in process.stdout]
            told.changes += lines[:-1]
            told.counts.update(lines[-1]["counts"])
            told.errors += lines[-1]["errors"]
        told.seconds += time.monotonic() - begin


def run(
    judge: Judge, folder: Path, some: random.Random, end: float, arguments: argparse.Namespace
) -> None:
    """The load, and one hot table for each thing that can become of late appends."""
    seconds = max(15.0, end - time.monotonic())
    names = {f"stress.t{n}": folder / f"t{n}" for n in range(TABLES)}
    hot = {late: {f"stress.hot{n}": folder / f"hot{n}"} for n, late in enumerate(LATE)}
    every = names | {name: place for of in hot.values() for name, place in of.items()}
    for table in every.values():
        judge.create(table, publishes=False)
    server = Server(folder / "server", every)

    def seed() -> str:
        return str(some.random())

    try:
        server.start()
        with judge.counts.judging("rest: load"):
            told = Told()
            used = server.cpu_seconds()
            memory = [server.memory()]
            for first in (1, 1 + CLIENTS):
                with clients(told, server.uri, first, CLIENTS, DELETES, seed(), list(names)):
                    time.sleep(seconds / 2)
                memory.append(server.memory())
            _cpu(server, used, told)
            shown = "; ".join(f"{all_of_it} MB, {live} MB live" for all_of_it, live in memory)
            print(f"  memory of the server at begin, middle and end: {shown}", flush=True)
            # What is kept of each snapshot is a few kB; the first half also warms up.
            (_, half), (_, full) = memory[1:]
            judge.counts.hold("rest: load: memory grows", full > 1.2 * half + 16, False)
            _figures(judge, "load", told, server)
            _compare(judge, "rest: load", told, server, names)
        for first, (late, one) in zip((101, 201), hot.items(), strict=True):
            with judge.counts.judging(f"rest: hot table, {late}"):
                _hot(judge, server, min(30.0, seconds), first, late, seed(), one)
        code = server.end(signal.SIGTERM)
        judge.counts.hold("rest: exit code after SIGTERM", code, 0)
    finally:
        server.close()


def _hot(
    judge: Judge,
    server: Server,
    seconds: float,
    first: int,
    late: str,
    seed: str,
    table: dict[str, Path],
) -> None:
    told = Told()
    server.lines.clear()
    used = server.cpu_seconds()
    with clients(told, server.uri, first, HOT_CLIENTS, 0, seed, list(table), late):
        time.sleep(seconds)
    _figures(judge, f"hot table, {late}", told, server)
    _cpu(server, used, told)
    by_client = Counter(change["client"] for change in told.changes)
    least, most = min(by_client.values(), default=0), max(by_client.values(), default=0)
    print(f"  commits of a client: {least} to {most}", flush=True)
    judge.counts.hold("rest: writers of the hot table", len(by_client), HOT_CLIENTS)
    _compare(judge, f"rest: hot table, {late}", told, server, table)


def run_kills(
    judge: Judge, folder: Path, some: random.Random, end: float, arguments: argparse.Namespace
) -> None:
    """The server is killed again and again while clients go on."""
    with judge.counts.judging("rest: kills"):
        _kills(judge, folder, some, arguments.kills)


def _kills(judge: Judge, folder: Path, some: random.Random, kills: int) -> None:
    names = {f"stress.k{n}": folder / f"k{n}" for n in range(TABLES)}
    for table in names.values():
        judge.create(table, publishes=False)
    server = Server(folder / "killed", names)
    try:
        server.start()
        told = Told()
        with clients(told, server.uri, 201, CLIENTS, DELETES, str(some.random()), list(names)):
            for _ in range(kills):
                # A server that has just started has nothing in its hands.
                server.await_commits(some.randint(1, 30))
                time.sleep(some.uniform(0, 1))
                server.end(signal.SIGKILL)
                judge.counts.count("rest: SIGKILL of the server")
                server.start()
            server.await_commits(1)
        _figures(judge, "kills", told, server)
        _compare(judge, "rest: kills", told, server, names)
    finally:
        server.close()


def _figures(judge: Judge, what: str, told: Told, server: Server) -> None:
    """What the server's log and the clients say of the time it took."""
    found = [(int(m[1]), int(m[2])) for line in server.lines if (m := COMMIT.search(line))]
    made = [took for status, took in found if status == 200]
    whole = [change["seconds"] * 1000 for change in told.changes]
    print(
        f"  {what}: {len(told.changes)} commits in {told.seconds:.0f} s "
        f"({len(told.changes) / told.seconds:.1f} per second)\n"
        f"  answers of the server: {_spread(made)}; "
        f"409: {sum(status == 409 for status, _ in found)}\n"
        f"  the whole change, with its retries: {_spread(whole)}; "
        f"at most {max((change['tries'] for change in told.changes), default=0)} tries\n"
        f"  {dict(told.counts)}",
        flush=True,
    )
    wrong = [line for line in server.lines if (m := ANY.search(line)) and _is_wrong(int(m[1]))]
    judge.counts.hold(f"rest: {what}: answers other than done and 409", wrong, [])
    judge.counts.hold(f"rest: {what}: errors of clients", told.errors, [])
    judge.counts.count(f"rest: {what}: commits", len(told.changes))


def _cpu(server: Server, before: float, told: Told) -> None:
    each = (server.cpu_seconds() - before) / max(1, len(told.changes)) * 1000
    print(
        f"  CPU time of the server: {each:.0f} ms for each commit, all requests counted", flush=True
    )


def _is_wrong(status: int) -> bool:
    return status not in (200, 204, 304, 409)


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return "too few"
    parts = statistics.quantiles(values, n=100, method="inclusive")
    return f"p50 {parts[49]:.0f} ms, p99 {parts[98]:.0f} ms, longest {max(values):.0f} ms"


def _compare(judge: Judge, what: str, told: Told, server: Server, names: dict[str, Path]) -> None:
    """Delta, pyiceberg and the catalog have what clients were told, and nothing else."""
    catalog = load_catalog("judge", type="rest", uri=server.uri)
    hold = judge.counts.hold
    for name, folder in names.items():
        wanted = told.rows(name)
        hold(f"{what}: {name}: rows in Delta", judge.rows(folder), wanted)
        table = catalog.load_table(name)
        seen = in_order([tuple(row.values()) for row in table.scan().to_arrow().to_pylist()])
        hold(f"{what}: {name}: rows by the catalog", seen, wanted)
        static = StaticTable.from_metadata(table.metadata_location)
        hold(f"{what}: {name}: rows in pyiceberg", by_pyiceberg(static), wanted)
        there = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        hold(f"{what}: {name}: snapshots are there once", len(set(there)), len(there))
        lost = told.snapshots(name) - set(there)
        hold(f"{what}: {name}: snapshots told and lost", lost, set())
        hold(f"{what}: {name}: what verify finds", verify(judge.spark, folder).violations, ())
        hold(f"{what}: {name}: what the log breaks", oracle.check(folder), [])
