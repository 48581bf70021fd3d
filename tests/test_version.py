"""One version everywhere: the file, the package, the jar and the JVM."""

from __future__ import annotations

import re
import zipfile
from importlib import metadata
from pathlib import Path

from pyspark.sql import SparkSession

import iceberg_writer_compat
from conftest import REPOSITORY
from iceberg_writer_compat import _jars

VERSION = (REPOSITORY / "VERSION").read_text().strip()


def properties(jar: Path) -> dict[str, str]:
    with zipfile.ZipFile(jar) as opened:
        lines = opened.read("iceberg-writer-compat.properties").decode().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_package() -> None:
    assert iceberg_writer_compat.__version__ == VERSION
    assert metadata.version("iceberg-writer-compat") == VERSION


def test_jar() -> None:
    line = _jars.spark_line()
    jar = _jars.own_jar(line)
    assert jar.name == f"iceberg-writer-compat_{line}_2.13-{VERSION}.jar"
    delta = metadata.version("delta-spark")
    (iceberg,) = (jar.parent / "iceberg").glob("iceberg-core-*.jar")
    (sqlite,) = (jar.parent / "iceberg").glob("sqlite-jdbc-*.jar")
    (runtime,) = (jar.parent / "readers").glob("iceberg-spark-runtime-*.jar")
    assert properties(jar) == {
        "version": VERSION,
        "spark": line,
        "delta": delta,
        "testedDeltas": ",".join(_jars.tested_deltas(line)),
        "iceberg": iceberg.stem.removeprefix("iceberg-core-"),
        "sqlite": sqlite.stem.removeprefix("sqlite-jdbc-"),
        "icebergRuntime": runtime.stem.removesuffix(iceberg.stem.removeprefix("iceberg-core")),
    }


def test_jvm(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    assert jvm.org.icebergwritercompat.IcebergWriterCompat.version() == VERSION


def test_tested_deltas_are_those_of_the_build() -> None:
    spec = (REPOSITORY / "project" / "SparkLine.scala").read_text()
    line = _jars.spark_line()
    lists = dict(re.findall(r'"([\d.]+)" -> Set\(([^)]*)\)', spec))
    assert _jars.tested_deltas(line) == [v for v, lines in lists.items() if f'"{line}"' in lines]
    assert _jars.tested_deltas(line)[0] == metadata.version("delta-spark")


def test_supported_lines_are_those_of_the_build() -> None:
    spec = (REPOSITORY / "project" / "SparkLine.scala").read_text()
    for line in _jars.SUPPORTED_LINES:
        assert f"spark{line.replace('.', '')}: SparkLine" in spec
    assert spec.count(": SparkLine =") == len(_jars.SUPPORTED_LINES)
