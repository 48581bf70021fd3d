"""docs/install.md: sessions that this package does not build, each in a JVM of its own."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oracle
from conftest import REPOSITORY, environment
from examples import blocks
from iceberg_writer_compat import _jars

BIN = Path(sys.executable).parent
MAVEN = REPOSITORY / "target" / "maven"
PAGE = blocks((REPOSITORY / "docs/install.md").read_text(encoding="utf-8"))

CREATE = (
    "CREATE TABLE t (a INT) USING delta "
    "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
)


def activated(**variables: str) -> dict[str, str]:
    """The environment in which the programs of the virtual environment find its Python."""
    return environment() | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **variables}


def jars() -> list[Path]:
    """What a session needs that does not publish."""
    line = _jars.spark_line()
    return [*_jars.delta_jars(line, "4.4.0"), _jars.own_jar(line)]


def started(command: list[str], folder: Path) -> list[str]:
    """A program of Spark, with what a test needs besides what the page says."""
    return [
        str(BIN / command[0]),
        *("--master", "local[1]"),
        *("--conf", f"spark.sql.warehouse.dir={folder}/warehouse"),
        *("--conf", "spark.sql.catalogImplementation=in-memory"),
        *command[1:],
    ]


def test_packages_of_a_maven_folder(tmp_path: Path) -> None:
    (shown,) = [block.body for block in PAGE if "--packages" in block.body]
    command = shlex.split(shown.replace("/path/of/the/checkout/target/maven", str(MAVEN)))
    ivy = tmp_path / "ivy"
    done = subprocess.run(
        [
            *started(command, tmp_path),
            *("--conf", f"spark.jars.ivy={ivy}"),
            *("-e", f"{CREATE}; INSERT INTO t VALUES (1); SELECT 'rows', count(*) FROM t"),
        ],
        cwd=tmp_path,
        env=activated(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "rows\t1"
    assert len(list((ivy / "jars").iterdir())) == 3
    assert oracle.check(tmp_path / "warehouse" / "t") == []


def test_jars_and_settings_of_the_shell_of_scala(tmp_path: Path) -> None:
    """Which has a class loader of its own for the classes that are typed.

    It has the options that the page gives to `spark-sql`.
    """
    (shown,) = [block.body for block in PAGE if "--jars" in block.body]
    options = shlex.split(shown)[1:]
    named = options[options.index("--jars") + 1].split(",")
    assert sorted(named) == sorted(jar.name for jar in jars())
    options[options.index("--jars") + 1] = ",".join(map(str, jars()))
    typed = [
        f'spark.sql("{CREATE}")',
        'spark.sql("INSERT INTO t VALUES (1)")',
        "case class Row(a: Int)",
        'Seq(Row(2)).toDF.write.format("delta").mode("append").saveAsTable("t")',
        'println("rows " + spark.table("t").as[Row].map(_.a).collect.sorted.mkString(" "))',
        'println(scala.util.Try(spark.sql("ALTER TABLE t ADD COLUMN b SMALLINT")))',
    ]
    done = subprocess.run(
        started(["spark-shell", *options], tmp_path),
        cwd=tmp_path,
        env=activated(TERM="dumb"),
        input="\n".join(typed) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "rows 1 2" in done.stdout.splitlines(), done.stdout + done.stderr[-3000:]
    assert "Run: ALTER TABLE t ADD COLUMN b INT" in done.stdout
    assert oracle.check(tmp_path / "warehouse" / "t") == []


def test_jars_and_settings_of_the_repl(tmp_path: Path) -> None:
    (settings,) = [block.body for block in PAGE if block.language == "properties"]
    conf = tmp_path / "conf"
    conf.mkdir()
    given = (REPOSITORY / "tests/conf/spark-defaults.conf").read_text()
    (conf / "spark-defaults.conf").write_text(f"{given}\n{settings}")
    command = ["pyspark", "--jars", ",".join(map(str, jars()))]
    typed = [
        "from iceberg_writer_compat import check",
        f'_ = spark.sql("{CREATE}")',
        'print("com" + "pliant", check(spark, "t").compliant)',
        "exit()",
    ]
    shown = typed_at_a_terminal(
        started(command, tmp_path), typed, activated(SPARK_CONF_DIR=str(conf)), tmp_path
    )
    assert "compliant True" in shown, shown[-3000:]
    assert oracle.check(tmp_path / "warehouse" / "t") == []


def typed_at_a_terminal(
    command: list[str], lines: list[str], environment: dict[str, str], folder: Path
) -> str:
    """What a program shows at a terminal, after these lines were typed at its prompts."""
    program, child = pty.fork()
    if program == 0:
        os.chdir(folder)
        os.execve(command[0], command, environment)
    shown, waiting = b"", list(lines)
    until = time.monotonic() + 200
    try:
        while time.monotonic() < until:
            if not select.select([child], [], [], 1)[0]:
                continue
            try:
                shown += os.read(child, 65536)
            except OSError:
                break
            if waiting and shown.count(b">>> ") > len(lines) - len(waiting):
                os.write(child, waiting.pop(0).encode() + b"\n")
    finally:
        os.close(child)
        os.waitpid(program, 0)
    return shown.decode()


@pytest.mark.parametrize("line", ["4.1"])
def test_where_the_jar_lies(line: str) -> None:
    command = [str(BIN / "iceberg-writer-compat"), "jar", "--spark", line]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == _jars.own_jar(line)
