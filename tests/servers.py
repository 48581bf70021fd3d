"""Servers of Spark in processes of their own, started as `spark-submit` starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from sessions import DELTA_EXTENSION, OWN_EXTENSION, jars


@contextmanager
def spark_server(
    main: str, port: int, folder: Path, settings: Mapping[str, str], arguments: Sequence[str] = ()
) -> Iterator[None]:
    """A server that has the extension, until the block ends; waits until it listens."""
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": jars(),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.extensions": f"{DELTA_EXTENSION},{OWN_EXTENSION}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--master", "local[2]", "--driver-memory", "1g", "--class", main]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    log = folder / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "spark-internal", *arguments],
            cwd=folder,
            env={key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(port, server, log)
        yield
    finally:
        server.terminate()
        server.wait(timeout=60)


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_listening(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        if is_listening(port):
            return
        time.sleep(0.2)
    pytest.fail(f"The server did not start:\n{log.read_text()[-4000:]}")
