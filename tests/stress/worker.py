"""A JVM of its own that works on a table until it is done, killed, or told to end.

It prints `ready` when its session is there, and a line for each statement that was answered.
Arguments: what to do; a folder for its warehouse; the folder of the table; more, by what it does.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from iceberg_writer_compat import (
    check,
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    publish,
    verify,
)
from sessions import local_builder, stock_builder
from stress import model


def say(*words: object) -> None:
    """One line for who has started this."""
    print(*words, flush=True)


def commits(spark: SparkSession, folder: Path, first: str) -> None:
    """One statement after the other, as the model counts them."""
    for number in itertools.count(int(first)):
        spark.sql(model.statement(number, folder))
        say(number)


def publishing(spark: SparkSession, folder: Path, first: str) -> None:
    """Publishes after some statements."""
    for number in itertools.count(int(first)):
        spark.sql(model.statement(number, folder))
        say(number)
        if number % 3 == 2:
            publish(spark, folder)


def vacuum(spark: SparkSession, folder: Path, first: str) -> None:
    """Deletes what no reader needs after each statement."""
    for number in itertools.count(int(first)):
        spark.sql(model.statement(number, folder))
        say(number)
        spark.sql(f"VACUUM delta.`{folder}` RETAIN 0 HOURS")


def rewrite(spark: SparkSession, folder: Path) -> None:
    """Switches the feature on, all files anew."""
    say(0)
    enable_iceberg_writer_compat(spark, folder, rewrite=True)
    say("done")


def race(spark: SparkSession, folder: Path, first: str, seconds: str, way: str) -> None:
    """Appends rows of its own for some seconds, and publishes by calls if told so."""
    end = time.monotonic() + float(seconds)
    for number in itertools.count(int(first)):
        if time.monotonic() > end:
            break
        spark.sql(f"INSERT INTO delta.`{folder}` VALUES ({number}, '{way}')")
        say(number)
        if way == "calls":
            publish(spark, folder)
            say("published")


def stock(spark: SparkSession, folder: Path, seconds: str) -> None:
    """Tries to write as Delta alone, and says what came of it."""
    end = time.monotonic() + float(seconds)
    for statement in itertools.cycle(
        (
            f"INSERT INTO delta.`{folder}` VALUES (-1, 'stock')",
            f"DELETE FROM delta.`{folder}`",
            f"UPDATE delta.`{folder}` SET name = 'stock'",
            f"ALTER TABLE delta.`{folder}` ADD COLUMN stock INT",
            f"OPTIMIZE delta.`{folder}`",
        )
    ):
        if time.monotonic() > end:
            break
        try:
            spark.sql(statement)
            say("written", statement)
        except Exception as error:
            refused = "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE" in str(error)
            say("refused" if refused else f"other {error}".replace("\n", " ")[:500])
        time.sleep(0.3)


def large(spark: SparkSession, folder: Path, plain: str) -> None:
    """Everything that goes over all files of a table, in the heap of this JVM."""
    found = check(spark, folder)
    say("check", found.compliant, len(found.findings))
    say("verify", len(verify(spark, folder).findings))
    result = publish(spark, folder)
    say("publish", result.files_added, result.metadata_location)
    enabled = enable_iceberg_writer_compat(spark, Path(plain))
    say("enable", enabled.changed)


KINDS = {
    "commits": commits,
    "publishing": publishing,
    "vacuum": vacuum,
    "rewrite": rewrite,
    "race": race,
    "stock": stock,
    "large": large,
}


def main(kind: str, warehouse: str, folder: str, *more: str) -> None:
    """Starts the session, works, and ends."""
    own = Path(warehouse)
    if kind == "stock":
        builder = stock_builder(own)
    else:
        builder = configure_spark_with_iceberg_writer_compat(local_builder(own))
    builder.config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    builder.config("spark.driver.memory", "512m" if kind == "large" else "700m")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    say("ready")
    KINDS[kind](spark, Path(folder), *more)  # type: ignore[operator]
    spark.stop()
    say("end")


main(*sys.argv[1:])
