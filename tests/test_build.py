"""The scripts that the build and CI use."""

from __future__ import annotations

import subprocess
import sys

from conftest import REPOSITORY

SCALA = r"""
printf '[info] OneSuite:\n[info] - a test (2 milliseconds)\n'
printf '[info] - another *** FAILED *** (1 second)\n[info]   1 did not equal 2\n'
exit 3
"""
PYTHON = r"""
printf 'tests/test_a.py::test_a[x - 1] PASSED            [  1/634]\n'
printf 'tests/test_a.py::test_b PASSED                   [  2/634]\n'
sleep 2
"""


def side_by_side(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = REPOSITORY / "build" / "side_by_side.py"
    return subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, timeout=60
    )


def test_commands_side_by_side() -> None:
    done = side_by_side("--every", "1", "scala", SCALA, "python", PYTHON)
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert "scala | [info] - a test (2 milliseconds)" in lines
    assert "python | tests/test_a.py::test_b PASSED                   [  2/634]" in lines
    assert any(line.startswith("scala | ended after ") and "code 3" in line for line in lines)
    assert any(line.startswith("python | ended after ") and "code 0" in line for line in lines)
    progress = (
        "=== 0 min: scala 1 passed, 1 failed, has ended; python 2 of 634 passed, 0 failed, in "
    )
    assert f"{progress}tests/test_a.py" in lines


def test_commands_side_by_side_that_pass() -> None:
    done = side_by_side("one", "true", "two", "echo it\\'s two")
    assert done.returncode == 0
    assert "two | it's two" in done.stdout.splitlines()
    assert side_by_side("one").returncode == 2
