"""The one Spark session of the tests, and how they judge a table."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import oracle
from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat
from object_store import ObjectStore
from sessions import kernel_jars, local_builder, reader_jars, store_jars

REPOSITORY = Path(__file__).resolve().parent.parent

# What every JVM begins with, whoever starts it.
os.environ["SPARK_CONF_DIR"] = str(REPOSITORY / "tests" / "conf")


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session keeps its tables."""
    return tmp_path_factory.mktemp("warehouse")


def of_jdk(program: str) -> str:
    """A program of the JDK."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(program, path=None if home is None else f"{home}/bin")
    assert found is not None, "the tests need a JDK"
    return found


def compiled(source: str, classes: Path) -> Path:
    """The folder with the compiled class of the tests of Scala that uses Hadoop alone."""
    (hadoop,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    file = REPOSITORY / "scala/iceberg/src/test/java/org/icebergwritercompat/testing" / source
    subprocess.run([of_jdk("javac"), "-cp", hadoop, "-d", classes, file], check=True)
    return classes


@pytest.fixture(scope="session")
def quick_local_fs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the class through which Delta writes checksums of versions."""
    return compiled("QuickLocalFs.java", tmp_path_factory.mktemp("classes"))


@pytest.fixture(scope="session")
def spark(warehouse: Path, quick_local_fs: Path) -> Iterator[SparkSession]:
    """A guarded session, shared by all tests of this process, that can read Iceberg tables."""
    all_jars = ",".join([reader_jars(), *map(str, [*kernel_jars(), *store_jars()])])
    builder = (
        local_builder(warehouse)
        .config("spark.jars", all_jars)
        # Compiling the many small queries would take longer than running them. Sessions in a JVM of
        # their own generate code, as Spark does by default.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        # Delta keeps 10 000 tables for an hour, about 1 MB each: more than the heap holds.
        .config("spark.databricks.delta.delta.log.cacheSize", "100")
        # Nobody looks at the text of the plans, which is made for each query.
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.driver.extraClassPath", str(quick_local_fs))
        .config(
            "spark.hadoop.fs.AbstractFileSystem.file.impl",
            "org.icebergwritercompat.testing.QuickLocalFs",
        )
        # Over hundreds of tests the optimizing compiler pays.
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC")
    )
    session = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def store(spark: SparkSession) -> Iterator[ObjectStore]:
    """An S3 server, with the session configured for it."""
    with ObjectStore.started() as running:
        conf = spark.sparkContext._jsc.hadoopConfiguration()
        for key, value in running.hadoop_settings().items():
            conf.set(key, value)
        yield running


_numbers = itertools.count()


@pytest.fixture
def table(spark: SparkSession, warehouse: Path) -> Iterator[Table]:
    """A table name and folder that no other test uses."""
    name = f"t{next(_numbers)}"
    yield Table(spark, name, warehouse / name)
    spark.sql(f"DROP TABLE IF EXISTS {name}")


class Table:
    """A table of the session's catalog, in the folder where the warehouse puts it."""

    def __init__(self, spark: SparkSession, name: str, folder: Path) -> None:
        """A table that need not exist yet."""
        self.spark = spark
        self.name = name
        self.folder = folder

    def __str__(self) -> str:
        """The name, for use in a statement."""
        return self.name

    @property
    def log(self) -> oracle.Log:
        """What the log says."""
        return oracle.read_log(self.folder)

    def rows(self) -> list[tuple[object, ...]]:
        """All rows, read by Spark in a fixed order."""
        return rows(self.spark, self.name)

    def create(self, columns: str = "a INT, b STRING", more: str = "") -> None:
        """Creates the table with the feature."""
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) USING delta {more} {PROPERTIES}")

    def create_with(self, values: str, columns: str, more: str = "") -> None:
        """Creates the table with the feature and these rows, which is a copy if there is one.

        The first such table is made by statements; the others get its files and its entry in the
        catalog.
        """
        kind = (values, columns, more)
        if kind not in _originals:
            name = f"original{len(_originals)}"
            original = Table(self.spark, name, self.folder.with_name(name))
            original.create(columns, more)
            self.spark.sql(f"INSERT INTO {name} VALUES {values}")
            _originals[kind] = original
        original = _originals[kind]
        # With their times, by which Delta dates its versions.
        shutil.copytree(original.folder, self.folder)
        jvm: Any = self.spark._jvm
        catalog: Any = self.spark._jsparkSession.sessionState().catalog()
        names = jvm.org.apache.spark.sql.catalyst.TableIdentifier
        entry = catalog.getTableMetadata(names(original.name))
        place = jvm.java.net.URI.create(self.folder.as_uri())
        changed = {
            "identifier": names(self.name, entry.identifier().database()),
            "storage": _with(entry.storage(), locationUri=jvm.scala.Option.apply(place)),
        }
        catalog.createTable(_with(entry, **changed), False, False)


_originals: dict[tuple[str, str, str], Table] = {}


def _with(value: Any, **changed: Any) -> Any:
    """A copy of a case class of the JVM with these fields changed."""
    fields = {
        value.productElementName(i): value.productElement(i) for i in range(value.productArity())
    }
    return value.copy(*(fields | changed).values())


PROPERTY = "delta.enableIcebergWriterCompatV1"
PROPERTIES = f"TBLPROPERTIES ('{PROPERTY}' = 'true')"


@contextmanager
def session_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session until the block ends."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    """All rows of a table, in a fixed order."""
    return sorted((tuple(row) for row in spark.table(table).collect()), key=repr)


def environment() -> dict[str, str]:
    """The environment of a Python that can import the modules of the tests."""
    paths = [str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_python(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python with the tests' modules at hand, and answers with what it printed."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Runs one of `tests/scripts` in a JVM of its own; fails with its output if it fails."""

    def run(name: str, *arguments: str | Path) -> str:
        done = run_python(REPOSITORY / "tests" / "scripts" / name, *arguments, cwd=tmp_path)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
        return done.stdout

    return run


@contextmanager
def to_be_killed(name: str, *arguments: str | Path) -> Iterator[IO[str]]:
    """What one of `tests/scripts` prints, in a JVM of its own; at the end both are killed."""
    script = REPOSITORY / "tests" / "scripts" / name
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["tests", *sys.path])}
    with subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            # The JVM is in the group of the process that started it.
            os.killpg(process.pid, signal.SIGKILL)
