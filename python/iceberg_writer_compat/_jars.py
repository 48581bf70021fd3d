"""The jars in this package, and their Spark lines."""

from __future__ import annotations

import re
import warnings
import zipfile
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
            "Elsewhere, install the wheel again, with: pip install --force-reinstall"
        )
    return found[0]


def any_jar() -> Path:
    """The jar of this project for the Spark line in use, or for another one if there is none."""
    try:
        return own_jar(spark_line())
    except (NotInstalledError, UnsupportedSparkVersionError):
        found = sorted(_FOLDER.glob("spark-*/iceberg-writer-compat_*.jar"))
        if not found:
            raise
        return found[-1]


def delta_jars(line: str, version: str) -> list[Path]:
    """Delta's jars for a Spark line, if this version was staged; a wheel contains none."""
    staged = sorted((_FOLDER / f"spark-{line}" / "delta").glob("*.jar"))
    return staged if all(jar.stem.endswith(f"-{version}") for jar in staged) else []


def tested_deltas(line: str) -> list[str]:
    """The Delta releases that the jar for a Spark line was tested with, the newest first."""
    return _built_for(line)["testedDeltas"].split(",")


def _built_for(line: str) -> dict[str, str]:
    with zipfile.ZipFile(own_jar(line)) as jar:
        text = jar.read("iceberg-writer-compat.properties").decode()
    return dict(row.split("=", 1) for row in text.splitlines())


def check_delta(line: str, version: str) -> None:
    """Compares the installed delta-spark with what the jar was tested with.

    Raises:
        NotInstalledError: if it is too old to work.
    """
    tested = tested_deltas(line)
    if version in tested:
        return
    newest, oldest = tested[0], tested[-1]
    remedy = f"run: pip install 'delta-spark=={newest}'"
    if _numbers(version) < _numbers(oldest):
        raise NotInstalledError(
            f"delta-spark {version} is installed, but Iceberg Writer Compat needs {oldest} or "
            f"later on Spark {line}; {remedy}"
        )
    warnings.warn(
        f"delta-spark {version} is installed, with which Iceberg Writer Compat was not tested "
        f"(tested on Spark {line}: {', '.join(tested)}); if the session does not start, {remedy}",
        stacklevel=4,
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def iceberg_jars(line: str) -> list[Path]:
    """Iceberg's jars for a Spark line; empty if they were not staged, as in a wheel."""
    return sorted((_FOLDER / f"spark-{line}" / "iceberg").glob("*.jar"))


def iceberg_packages(line: str) -> list[str]:
    """The Maven coordinates of what publishing needs."""
    versions = _built_for(line)
    return [
        f"org.apache.iceberg:iceberg-core:{versions['iceberg']}",
        f"org.xerial:sqlite-jdbc:{versions['sqlite']}",
    ]


def reader_jars(line: str) -> list[Path]:
    """Iceberg's connector for a Spark line; empty if it was not staged, as in a wheel."""
    return sorted((_FOLDER / f"spark-{line}" / "readers").glob("*.jar"))


def reader_packages(line: str) -> list[str]:
    """The Maven coordinates of Iceberg's connector and of what it lacks for publishing.

    Empty if there is no connector for the Spark line.
    """
    versions = _built_for(line)
    if not versions["icebergRuntime"]:
        return []
    _, sqlite = iceberg_packages(line)
    return [f"org.apache.iceberg:{versions['icebergRuntime']}:{versions['iceberg']}", sqlite]
