"""How tests build sessions, in this process and in the scripts that need one of their own."""

from __future__ import annotations

from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import iceberg_writer_compat

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
OWN_EXTENSION = "org.icebergwritercompat.IcebergWriterCompatExtension"


def local_builder(warehouse: Path) -> SparkSession.Builder:
    """A builder for a small local session, that knows nothing of Delta yet.

    How many partitions it has is in `conf/spark-defaults.conf`.
    """
    return (
        SparkSession.builder.appName("tests")
        .master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        # Hundreds of tests share a session; what it remembers of them for the UI fills the heap.
        .config("spark.ui.retainedJobs", "10")
        .config("spark.ui.retainedStages", "10")
        .config("spark.ui.retainedTasks", "100")
        .config("spark.sql.ui.retainedExecutions", "10")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:{warehouse}/metastore")
    )


def reader_jars() -> str:
    """Iceberg's own connector for this line of Spark, and what else publishing needs."""
    line = ".".join(pyspark.__version__.split(".")[:2])
    folder = Path(iceberg_writer_compat.__file__).parent / "jars" / f"spark-{line}"
    beside = (jar for jar in (folder / "iceberg").glob("*.jar") if "iceberg-" not in jar.name)
    return ",".join(map(str, [*(folder / "readers").glob("*.jar"), *beside]))


def kernel_jars() -> list[Path]:
    """Delta Kernel; not part of the package."""
    line = ".".join(pyspark.__version__.split(".")[:2])
    folder = Path(iceberg_writer_compat.__file__).parent / "jars" / f"spark-{line}"
    return sorted((folder / "kernel").glob("*.jar"))


def store_jars() -> list[Path]:
    """Hadoop's file system for S3 and the AWS SDK; not part of the package."""
    line = ".".join(pyspark.__version__.split(".")[:2])
    folder = Path(iceberg_writer_compat.__file__).parent / "jars" / f"spark-{line}"
    return sorted((folder / "stores").glob("*.jar"))


def jars(delta: bool = True, own: bool = True) -> str:
    """The staged jars, as a value of spark.jars."""
    line = ".".join(pyspark.__version__.split(".")[:2])
    folder = Path(iceberg_writer_compat.__file__).parent / "jars" / f"spark-{line}"
    found = list((folder / "delta").glob("*.jar")) if delta else []
    found += list(folder.glob("*.jar")) if own else []
    return ",".join(str(jar) for jar in found)


def stock_builder(warehouse: Path, own_jar: bool = False) -> SparkSession.Builder:
    """A builder for a session with Delta alone, with or without this project's jar beside it."""
    return (
        local_builder(warehouse)
        .config("spark.jars", jars(own=own_jar))
        .config("spark.sql.extensions", DELTA_EXTENSION)
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )
