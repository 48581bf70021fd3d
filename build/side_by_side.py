"""Runs commands at once, shows what they print behind their names, and how far they are.

usage: side_by_side.py [--every SECONDS] NAME COMMAND [NAME COMMAND]...

Every minute, or so many seconds, a line tells how many tests each command has passed, as its output
says: the lines of ScalaTest under sbt, and those of `pytest -v` with `console_output_style=count`.
Fails after all commands have ended, if one of them has failed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import IO

SCALATEST = re.compile(r"^\[info\] - ")
SUITE = re.compile(r"^\[info\] (?P<suite>\w+Suite)\b.*:$")
PYTEST = re.compile(
    r"^(?P<file>\S+\.py)::.* (?P<result>PASSED|FAILED|ERROR) +\[ *\d+/(?P<all>\d+)\]$"
)


class Command:
    """One command that runs, and what its output has said so far."""

    def __init__(self, name: str, command: str) -> None:
        """Starts the command in a process group of its own."""
        self.name = name
        self.passed = self.failed = 0
        self.all = self.now = ""
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.thread = threading.Thread(target=self._show, args=(self.process.stdout,))
        self.thread.start()

    def _show(self, output: IO[str]) -> None:
        for line in output:
            self.see(line.rstrip("\n"))
            say(f"{self.name} | {line.rstrip()}")
        code = self.process.wait()
        say(f"{self.name} | ended after {time.monotonic() - self.started:.0f} s with code {code}")

    def see(self, line: str) -> None:
        """Takes notice of a line that tells of a test or of a suite."""
        if SCALATEST.match(line):
            self._count("*** FAILED ***" not in line)
        elif found := SUITE.match(line):
            self.now = found["suite"]
        elif found := PYTEST.match(line):
            self._count(found["result"] == "PASSED")
            self.all, self.now = f" of {found['all']}", found["file"]

    def _count(self, passed: bool) -> None:
        if passed:
            self.passed += 1
        else:
            self.failed += 1

    def progress(self) -> str:
        """How far the command is."""
        where = f"in {self.now}" if self.thread.is_alive() else "has ended"
        return f"{self.name} {self.passed}{self.all} passed, {self.failed} failed, {where}"

    def stop(self) -> None:
        """Ends the command and all that it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)


_printing = threading.Lock()


def say(line: str) -> None:
    """Prints a whole line, whoever else prints."""
    with _printing:
        print(line, flush=True)


def main(arguments: list[str]) -> int:
    """Runs the commands; the exit code is that of the first one that has failed."""
    every = 60.0
    if arguments[:1] == ["--every"]:
        every, arguments = float(arguments[1]), arguments[2:]
    if not arguments or len(arguments) % 2:
        print(__doc__, file=sys.stderr)
        return 2
    names, lines = arguments[::2], arguments[1::2]
    commands = [Command(name, line) for name, line in zip(names, lines, strict=True)]

    def stop(number: int, _frame: object) -> None:
        for command in commands:
            command.stop()
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    started = time.monotonic()
    while any(command.thread.is_alive() for command in commands):
        told = time.monotonic() + every
        for command in commands:
            command.thread.join(max(0.0, told - time.monotonic()))
        if any(command.passed for command in commands) and time.monotonic() >= told:
            minutes = (time.monotonic() - started) / 60
            say(f"=== {minutes:.0f} min: " + "; ".join(c.progress() for c in commands))
    return next((c.process.returncode for c in commands if c.process.returncode), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
