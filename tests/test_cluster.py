"""Tables on a standalone cluster, and tables in a Hive metastore; both listen on 127.0.0.1 only."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from conftest import Script, environment, to_be_killed
from servers import free_port, is_listening

_HOME = Path(pyspark.__file__).parent


@contextmanager
def _running(folder: Path, name: str, *arguments: str) -> Iterator[None]:
    """A program of Spark; at the end it is ended, with those that it has started."""
    settings = {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), name, *arguments],
            cwd=folder,
            env=environment() | settings,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=30)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and two workers with one core each; its address."""
    port = free_port()
    with ExitStack() as programs:
        deploy = "org.apache.spark.deploy"
        host = ("--host", "127.0.0.1", "--webui-port", "0")
        master = f"spark://127.0.0.1:{port}"
        programs.enter_context(
            _running(tmp_path, f"{deploy}.master.Master", *host, "--port", str(port))
        )
        _await(port)
        for number in ("1", "2"):
            folder = tmp_path / f"worker{number}"
            folder.mkdir()
            more = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder), master)
            programs.enter_context(_running(folder, f"{deploy}.worker.Worker", *host, *more))
        yield master


def _await(port: int) -> None:
    for _ in range(600):
        if is_listening(port):
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on {port}")


def test_on_a_cluster(cluster: str, script: Script, tmp_path: Path) -> None:
    assert script("on_cluster.py", tmp_path / "warehouse", cluster).endswith("done\n")


def test_in_a_hive_metastore(script: Script, tmp_path: Path) -> None:
    with to_be_killed("hive_metastore.py", tmp_path / "warehouse") as server:
        port = server.readline().strip()
        assert port.isdigit()
        output = script("publish_in_hive.py", tmp_path / "warehouse", port)
        assert output.endswith("done\n")
