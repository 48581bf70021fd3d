"""The one door to the JVM: `org.icebergwritercompat.IcebergWriterCompat`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NoReturn

from pyspark import SparkContext
from pyspark.sql import SparkSession

from iceberg_writer_compat.exceptions import (
    NoActiveSessionError,
    NotInstalledError,
    SparkConnectNotSupportedError,
)

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OWN_EXTENSION = "org.icebergwritercompat.IcebergWriterCompatExtension"

_REMEDY = f"""\
Start a new process, and build its first session like this:

    from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat

    builder = SparkSession.builder.appName("example")
    spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()

Where spark-submit or a cluster starts the JVM, it must have the jar (--packages or --jars, see
iceberg_writer_compat.maven_coordinate()) and these settings:

    --conf spark.sql.extensions={DELTA_EXTENSION},{OWN_EXTENSION}
    --conf spark.sql.catalog.spark_catalog={DELTA_CATALOG}"""


def require(spark: object) -> Any:
    """The JVM object of this project, for a session that is guarded."""
    session = _classic_session(spark)
    facade = _facade(session._jvm)
    if facade is None:
        refuse("its JVM does not have the jar of Iceberg Writer Compat")
    if not facade.isInstalled():
        refuse(f"{OWN_EXTENSION} is not in spark.sql.extensions, or could not be loaded")
    return facade


def refuse_remote(options: Mapping[str, Any]) -> None:
    """Fails if a builder with these options would make a Spark Connect session."""
    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
    remote = "spark.remote" in options or any(
        name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    )
    if remote or mode == "connect":
        _refuse_connect()


def refuse_running_without_jar() -> None:
    """Fails if a JVM runs that lacks the jar, because its class path cannot grow any more."""
    jvm = SparkContext._jvm
    if jvm is not None and _facade(jvm) is None:
        refuse(
            "this Python process started its JVM without the jar of Iceberg Writer Compat, and "
            "spark.jars cannot change while a JVM runs, not even after spark.stop()"
        )


def refuse(reason: str) -> NoReturn:
    """Raises the error for a session that is not guarded."""
    raise NotInstalledError(
        f"Iceberg Writer Compat does not guard this Spark session: {reason}.\n{_REMEDY}"
    )


def _classic_session(spark: object) -> SparkSession:
    if any(base.__module__.startswith("pyspark.sql.connect.") for base in type(spark).__mro__):
        _refuse_connect()
    if spark is None:
        # What SparkSession.getActiveSession() answers where there is none.
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
        "SQL: ALTER TABLE t SET TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    )


def _facade(jvm: Any) -> Any | None:
    # Py4J takes a name it cannot find for a package.
    found = jvm.org.icebergwritercompat.IcebergWriterCompat
    return found if hasattr(found, "_fqn") and type(found).__name__ == "JavaClass" else None
