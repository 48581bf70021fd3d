"""Calls `org.icebergwritercompat.IcebergWriterCompat` in the JVM; no other module does."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, Literal, NoReturn, SupportsIndex

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.classic.column import Column
from pyspark.sql.classic.dataframe import DataFrame

from iceberg_writer_compat.exceptions import (
    NoActiveSessionError,
    NotInstalledError,
    SparkConnectNotSupportedError,
    UnreadableTableError,
)

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OWN_EXTENSION = "org.icebergwritercompat.IcebergWriterCompatExtension"

_OWN_ERROR = "org.icebergwritercompat.errors.IcebergWriterCompatException"

_REMEDY = f"""\
Start a new process, and build its first session like this:

    from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat

    builder = SparkSession.builder.appName("example")
    spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()

If spark-submit or a cluster starts the JVM, it needs the jar of Delta Lake, the jar whose path
`iceberg-writer-compat jar` prints (--jars), and these settings:

    --conf spark.sql.extensions={DELTA_EXTENSION},{OWN_EXTENSION}
    --conf spark.sql.catalog.spark_catalog={DELTA_CATALOG}"""


def require(spark: object) -> Any:
    """The JVM object of this project, for a session with the extension."""
    session = _classic_session(spark)
    facade = _facade(session._jvm)
    if facade is None:
        refuse("its JVM does not have the jar of Iceberg Writer Compat")
    if not facade.isInstalled():
        refuse(f"{OWN_EXTENSION} is not in spark.sql.extensions, or could not be loaded")
    return facade


def table_name(table: object) -> str:
    """A table as an argument of the JVM: a name, or a path as text."""
    if isinstance(table, str):
        return text(table)
    if isinstance(table, os.PathLike):
        return text(os.fsdecode(table))
    raise TypeError(f"A table is given by its name or path, but this is of type {type(table)}.")


def text(value: str) -> str:
    """Text as an argument of the JVM; fails if Python has undecodable bytes in it."""
    value.encode("utf-8")
    return value


# The largest long of the JVM.
LONGEST = 2**63 - 1


def whole_number(what: str, value: object, least: int) -> int | None:
    """A whole number as an argument of the JVM; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{what} is a whole number, but this is of type {type(value)}.")
    number = operator.index(value)
    if not least <= number <= LONGEST:
        raise ValueError(f"{what} is a number from {least} to {LONGEST}, but not {number}.")
    return number


def statement(spark: SparkSession, text: str) -> DataFrame:
    """The result of a statement; `${name}` in it is not substituted."""
    return DataFrame(_facade(spark._jvm).statement(spark._jsparkSession, text), spark)


def version_of(spark: SparkSession, table: str, version: int) -> DataFrame:
    """The rows of a version of a table; `${name}` in its name is not substituted."""
    rows = _facade(spark._jvm).version(spark._jsparkSession, table, version)
    return DataFrame(rows, spark)


def expression(spark: SparkSession, text: str) -> Column:
    """An expression in Spark SQL; `${name}` in it is not substituted."""
    return Column(_facade(spark._jvm).expression(text))


@contextmanager
def without_stack() -> Iterator[None]:
    """Raises errors for which PySpark has no exception as one line, without a stack trace."""
    try:
        yield
    except Py4JJavaError as error:
        raise UnreadableTableError(message(error), condition(error)) from None


def condition(error: Exception) -> str | None:
    """The condition of an error that the JVM raised, if it has one."""
    if isinstance(error, PySparkException):
        return error.getCondition()
    if isinstance(error, UnreadableTableError):
        return error.condition
    if isinstance(error, Py4JJavaError):
        java, gateway = error.java_exception, SparkContext._gateway
        if gateway is not None and is_instance_of(gateway, java, "org.apache.spark.SparkThrowable"):
            return str(java.getCondition())
    return None


Door = Literal["python", "command"]


def message(error: Exception, door: Door = "python") -> str:
    """The text of an error of the JVM without its stack trace, with the remedy for a language."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    gateway = SparkContext._gateway
    if java is not None and gateway is not None and is_instance_of(gateway, java, _OWN_ERROR):
        return str(java.messageIn(door))
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getMessage() or error.java_exception.toString())
    # PySpark appends the JVM's stack trace if a session setting asks for it.
    return str(error).split("\n\nJVM stacktrace:")[0].strip()


def refuse_remote(options: Mapping[str, Any]) -> None:
    """Fails if a builder with these options would make a Spark Connect session."""
    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
    remote = "spark.remote" in options or any(
        name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    )
    if remote or mode == "connect":
        _refuse_connect()


def refuse_running_without_jar() -> None:
    """Fails if a JVM without the jar runs, because its class path cannot be extended."""
    jvm = SparkContext._jvm
    if jvm is not None and _facade(jvm) is None:
        refuse(
            "this Python process started its JVM without the jar of Iceberg Writer Compat, and "
            "spark.jars cannot change while a JVM runs, not even after spark.stop()"
        )


def refuse(reason: str) -> NoReturn:
    """Raises the error for a session without the extension."""
    raise NotInstalledError(
        f"Iceberg Writer Compat does not guard this Spark session: {reason}.\n{_REMEDY}"
    )


def _classic_session(spark: object) -> SparkSession:
    if any(base.__module__.startswith("pyspark.sql.connect.") for base in type(spark).__mro__):
        _refuse_connect()
    if spark is None:
        # SparkSession.getActiveSession() returns None if there is none.
        raise NoActiveSessionError(
            "There is no active Spark session.\nCreate one, or pass the one to use."
        )
    if not isinstance(spark, SparkSession):
        raise TypeError(f"A SparkSession is needed, but this is of type {type(spark)}.")
    if spark.sparkContext._jsc is None:
        raise NoActiveSessionError(
            "This Spark session was stopped.\nCreate a new one, and pass that."
        )
    return spark


def _refuse_connect() -> NoReturn:
    raise SparkConnectNotSupportedError(
        "Iceberg Writer Compat cannot be reached through Spark Connect, because its Python "
        "functions call the JVM of the session.\nOn a Connect server that has the extension, use "
        "SQL: CALL iceberg_writer_compat.system.enable(table => 't')"
    )


def has_class(jvm: Any, name: str) -> bool:
    """Whether a JVM has a class."""
    return _class(jvm, name) is not None


def _facade(jvm: Any) -> Any:
    return _class(jvm, "org.icebergwritercompat.IcebergWriterCompat")


def _class(jvm: Any, name: str) -> Any | None:
    # Py4J returns a package for a name that it cannot find.
    found = reduce(getattr, name.split("."), jvm)
    return found if hasattr(found, "_fqn") and type(found).__name__ == "JavaClass" else None
