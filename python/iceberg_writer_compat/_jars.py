"""The jars in this package, and the Spark lines they are for."""

from __future__ import annotations

from pathlib import Path

import pyspark

from iceberg_writer_compat.exceptions import NotInstalledError, UnsupportedSparkVersionError

SUPPORTED_LINES = ("4.0", "4.1", "4.2")

_FOLDER = Path(__file__).parent / "jars"


def spark_line(version: str | None = None) -> str:
    """The supported line, such as `4.1`, of a Spark version; by default of PySpark's."""
    version = version or pyspark.__version__
    line = ".".join(version.split(".")[:2])
    if line not in SUPPORTED_LINES:
        supported = ", ".join(SUPPORTED_LINES)
        raise UnsupportedSparkVersionError(
            f"Iceberg Writer Compat has no jar for Spark {version}. Supported Spark lines: "
            f"{supported}.\nRun: pip install 'pyspark==4.1.*'"
        )
    return line


def own_jar(line: str) -> Path:
    """The jar of this project for a Spark line."""
    found = sorted((_FOLDER / f"spark-{line}").glob("iceberg-writer-compat_*.jar"))
    if len(found) != 1:
        what = "several jars" if found else "no jar"
        project = f"spark{line.replace('.', '')}"
        raise NotInstalledError(
            f"The package iceberg_writer_compat has {what} for Spark {line} in {_FOLDER}.\n"
            f"In a source checkout, run: make setup && build/sbt {project}/stage\n"
            "Elsewhere, run: pip install --force-reinstall iceberg-writer-compat"
        )
    return found[0]


def delta_jars(line: str) -> list[Path]:
    """Delta's own jars for a Spark line; empty where they were not staged, as in a wheel."""
    return sorted((_FOLDER / f"spark-{line}" / "delta").glob("*.jar"))


def iceberg_jars(line: str) -> list[Path]:
    """Iceberg's own jars for a Spark line; empty where they were not staged, as in a wheel."""
    return sorted((_FOLDER / f"spark-{line}" / "iceberg").glob("*.jar"))
