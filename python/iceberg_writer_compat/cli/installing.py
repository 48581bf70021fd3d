"""The command that helps to install the extension where Python does not build the session."""

from __future__ import annotations

import click

from iceberg_writer_compat import _jars
from iceberg_writer_compat.cli._common import command


@command("jar", "spark-sql --jars $(iceberg-writer-compat jar) …")
@click.option(
    "--spark", "line", metavar="VERSION", help="A Spark version, such as 4.1; default: PySpark's."
)
def jar(line: str | None) -> int:
    """Print where the jar for spark.jars lies.

    For sessions that this package does not configure. Needs no Spark session.
    """
    click.echo(_jars.own_jar(_jars.spark_line(line)))
    return 0
