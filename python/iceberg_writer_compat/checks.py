"""Reports on tables; none of these functions changes anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, overload

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from iceberg_writer_compat import _jvm, _parallel, _rule_texts
from iceberg_writer_compat.exceptions import UnreadableTableError
from iceberg_writer_compat.report import Report, Reports, RuleText, TableError

Table: TypeAlias = "str | os.PathLike[str]"
Tables: TypeAlias = "Sequence[str | os.PathLike[str]]"

# Errors that concern the table of a report.
TABLE_ERRORS = (PySparkException, UnreadableTableError)


# A str is also a sequence of str; the first signature takes precedence.
@overload
def check(  # type: ignore[overload-overlap]
    spark: SparkSession, tables: Table, version: int | None = None
) -> Report: ...
@overload
def check(
    spark: SparkSession,
    tables: Tables,
    version: int | None = None,
    *,
    parallelism: int = _parallel.DEFAULT,
) -> Reports: ...
def check(
    spark: SparkSession,
    tables: Table | Tables,
    version: int | None = None,
    *,
    parallelism: int = _parallel.DEFAULT,
) -> Report | Reports:
    """Reports the rules that a table breaks, from its log alone.

    Args:
        spark: A session that has the extension.
        tables: The name or path of a table with or without the feature; or several. The result for
            several tables contains an error for a table that cannot be read.
        version: The version to check; by default the newest.
        parallelism: How many of several tables are processed at a time.
    """
    door = _jvm.require(spark)
    session, at = spark._jsparkSession, _jvm.whole_number("version", version, least=0)
    return _answer(spark, tables, lambda table: door.check(session, table, at), parallelism)


@overload
def verify(  # type: ignore[overload-overlap]
    spark: SparkSession, tables: Table, version: int | None = None, files: int | None = None
) -> Report: ...
@overload
def verify(
    spark: SparkSession,
    tables: Tables,
    version: int | None = None,
    files: int | None = None,
    *,
    parallelism: int = _parallel.DEFAULT,
) -> Reports: ...
def verify(
    spark: SparkSession,
    tables: Table | Tables,
    version: int | None = None,
    files: int | None = None,
    *,
    parallelism: int = _parallel.DEFAULT,
) -> Report | Reports:
    """Reports what `check` does, and checks the footers of the data files, in a Spark job.

    Args:
        spark: A session that has the extension.
        tables: A name or path, or several, as for `check`.
        version: The version to check; by default the newest.
        files: The maximal number of files to open per table, spread evenly; by default all.
        parallelism: How many of several tables are processed at a time.
    """
    door = _jvm.require(spark)
    session, at = spark._jsparkSession, _jvm.whole_number("version", version, least=0)
    most = _jvm.whole_number("files", files, least=1)
    return _answer(spark, tables, lambda table: door.verify(session, table, at, most), parallelism)


@overload
def would_break(spark: SparkSession, statement: str) -> Report: ...
@overload
def would_break(spark: SparkSession, *, table: Table, schema: StructType | str) -> Report: ...
def would_break(
    spark: SparkSession,
    statement: str | None = None,
    *,
    table: Table | None = None,
    schema: StructType | str | None = None,
) -> Report:
    """Reports the rules that a change of a table would break, without making the change.

    Args:
        spark: A session that has the extension.
        statement: An ALTER, CREATE or REPLACE statement.
        table: Instead of a statement, the name or path of a table.
        schema: The schema that `table` would have; as text, it is written as in CREATE TABLE.
    """
    door = _jvm.require(spark)
    session = spark._jsparkSession
    if statement is not None and table is None and schema is None:
        text = _jvm.text(statement)
        return _report(spark, lambda: door.wouldBreak(session, text))
    if statement is None and table is not None and schema is not None:
        name = _jvm.table_name(table)
        wanted = StructType.fromDDL(schema) if isinstance(schema, str) else schema
        return _report(spark, lambda: door.wouldBreakSchema(session, name, wanted.json()))
    raise TypeError("Either a statement is needed, or both a table and a schema.")


@overload
def history(  # type: ignore[overload-overlap]
    spark: SparkSession, tables: Table
) -> Report: ...
@overload
def history(
    spark: SparkSession, tables: Tables, *, parallelism: int = _parallel.DEFAULT
) -> Reports: ...
def history(
    spark: SparkSession, tables: Table | Tables, *, parallelism: int = _parallel.DEFAULT
) -> Report | Reports:
    """Reports which version of a table first broke each rule, and its operation.

    Args:
        spark: A session that has the extension.
        tables: A name or path, or several, as for `check`.
        parallelism: How many of several tables are processed at a time.
    """
    door = _jvm.require(spark)
    session = spark._jsparkSession
    return _answer(spark, tables, lambda table: door.history(session, table), parallelism)


def explain(rule: str) -> RuleText:
    """Returns the text of a rule, its reason and its sources; needs no session and no JVM."""
    return _rule_texts.rule(rule)


def rules() -> tuple[RuleText, ...]:
    """Returns all rules; needs no session and no JVM."""
    return _rule_texts.rules()


@overload
def tables_in(spark: SparkSession, schema: str) -> list[str]: ...
@overload
def tables_in(spark: SparkSession, *, catalog: str) -> list[str]: ...
def tables_in(
    spark: SparkSession, schema: str | None = None, *, catalog: str | None = None
) -> list[str]:
    """Returns the names of all Delta tables of a schema or catalog, as written in statements.

    Args:
        spark: The session.
        schema: The name of a schema, as written in statements.
        catalog: Instead of a schema, the name of a catalog.
    """
    if (schema is None) == (catalog is None):
        raise TypeError("Either a schema is needed, or a catalog.")
    door, session = _jvm.require(spark), spark._jsparkSession
    with _jvm.without_stack():
        if schema is not None:
            return list(door.tablesInSchema(session, _jvm.text(schema)))
        return list(door.tablesInCatalog(session, _jvm.text(str(catalog))))


def failed(table: str, error: Exception, door: _jvm.Door = "python") -> TableError:
    """The entry for a table whose report ended with an error."""
    return TableError(table, _jvm.condition(error), _jvm.message(error, door))


def _answer(
    spark: SparkSession,
    tables: Table | Tables,
    ask: Callable[[str], str],
    parallelism: int,
) -> Report | Reports:
    if isinstance(tables, (str, bytes)) or not isinstance(tables, Sequence):
        name = _jvm.table_name(tables)
        return _report(spark, lambda: ask(name))

    def entry(name: str) -> Report | TableError:
        try:
            return _report(spark, partial(ask, name))
        except TABLE_ERRORS as error:
            return failed(name, error)

    with _parallel.Pool(spark, _parallel.require(parallelism)) as pool:
        return Reports(tuple(pool.map(entry, [*map(_jvm.table_name, tables)])), spark)


def _report(spark: SparkSession, ask: Callable[[], str]) -> Report:
    with _jvm.without_stack():
        return Report.from_json(ask(), spark)
