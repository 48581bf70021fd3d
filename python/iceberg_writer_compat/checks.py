"""What complies, what does not, and what would not: questions that change nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, overload

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from iceberg_writer_compat import _jvm
from iceberg_writer_compat.exceptions import UnreadableTableError
from iceberg_writer_compat.report import Report, Reports, RuleText, TableError

Table: TypeAlias = "str | os.PathLike[str]"
Tables: TypeAlias = "Sequence[str | os.PathLike[str]]"

# What a report ends with because of the table it is about.
TABLE_ERRORS = (PySparkException, UnreadableTableError)


# Text is a sequence of text too; the first of two signatures goes before.
@overload
def check(  # type: ignore[overload-overlap]
    spark: SparkSession, tables: Table, version: int | None = None
) -> Report: ...
@overload
def check(spark: SparkSession, tables: Tables, version: int | None = None) -> Reports: ...
def check(
    spark: SparkSession, tables: Table | Tables, version: int | None = None
) -> Report | Reports:
    """Tells what stands against the feature in a table, from its metadata alone.

    Args:
        spark: A session that has the extension.
        tables: A name or path, with or without the feature; or several, whose reports come
            together, with an error in the place of a table that cannot be read.
        version: The version to look at; by default the latest.
    """
    door = _jvm.require(spark)
    session, at = spark._jsparkSession, _jvm.whole_number("version", version, least=0)
    return _answer(spark, tables, lambda table: door.check(session, table, at))


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
) -> Reports: ...
def verify(
    spark: SparkSession,
    tables: Table | Tables,
    version: int | None = None,
    files: int | None = None,
) -> Report | Reports:
    """Tells what `check` tells, and what the footers of the data files say, in a Spark job.

    Args:
        spark: A session that has the extension.
        tables: A name or path, with or without the feature; or several, as `check` takes them.
        version: The version to look at; by default the latest.
        files: The most files to open of a table, spread evenly; by default all.
    """
    door = _jvm.require(spark)
    session, at = spark._jsparkSession, _jvm.whole_number("version", version, least=0)
    most = _jvm.whole_number("files", files, least=1)
    return _answer(spark, tables, lambda table: door.verify(session, table, at, most))


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
    """Tells what a change would do to a table, without making it.

    Args:
        spark: A session that has the extension.
        statement: An ALTER, CREATE or REPLACE statement.
        table: Instead of a statement, a name or path,
        schema: and the schema the table would have; as text it is written as in CREATE TABLE.
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
def history(spark: SparkSession, tables: Tables) -> Reports: ...
def history(spark: SparkSession, tables: Table | Tables) -> Report | Reports:
    """Tells which version of a table first broke each rule, and which operation wrote it.

    Args:
        spark: A session that has the extension.
        tables: A name or path, with or without the feature; or several, as `check` takes them.
    """
    door = _jvm.require(spark)
    session = spark._jsparkSession
    return _answer(spark, tables, lambda table: door.history(session, table))


def explain(rule: str) -> RuleText:
    """Tells what a rule says, why, and where it comes from; no session is needed."""
    return explain_all([rule])[0]


def explain_all(wanted: Sequence[str]) -> list[RuleText]:
    """What `explain` tells, of several rules."""
    with _jvm.without_session() as door, _jvm.without_stack():
        return [RuleText.from_dict(json.loads(door.explain(rule))) for rule in wanted]


def rules() -> tuple[RuleText, ...]:
    """All rules; no session is needed."""
    with _jvm.without_session() as door:
        return tuple(map(RuleText.from_dict, json.loads(door.rules())))


@overload
def tables_in(spark: SparkSession, schema: str) -> list[str]: ...
@overload
def tables_in(spark: SparkSession, *, catalog: str) -> list[str]: ...
def tables_in(
    spark: SparkSession, schema: str | None = None, *, catalog: str | None = None
) -> list[str]:
    """The names of all Delta tables of a schema or catalog, as a statement spells them.

    Args:
        spark: The session.
        schema: The name of a schema, as a statement spells it.
        catalog: Instead of a schema, the name of a catalog.
    """
    if (schema is None) == (catalog is None):
        raise TypeError("Either a schema is needed, or a catalog.")
    if schema is not None:
        schemas = [".".join(map(_quoted, _jvm.name_parts(spark, schema)))]
    else:
        # SHOW NAMESPACES takes the name of a schema as well, and then shows nothing.
        with _jvm.without_stack():
            spark._jsparkSession.sessionState().catalogManager().catalog(str(catalog))
        name = _quoted(str(catalog))
        # Spark quotes these names where it must.
        rows = _jvm.statement(spark, f"SHOW NAMESPACES IN {name}").collect()
        schemas = [f"{name}.{row[0]}" for row in rows]
    return [f"{s}.{table}" for s in schemas for table in _delta_tables(spark, s)]


def _delta_tables(spark: SparkSession, schema: str) -> list[str]:
    # This reads no log, so that a table whose log is broken is listed as well.
    rows = _jvm.statement(spark, f"SHOW TABLE EXTENDED IN {schema} LIKE '*'").collect()
    return [
        _quoted(row.tableName)
        for row in rows
        if not row.isTemporary and re.search(r"(?mi)^Provider: delta$", row.information)
    ]


def _quoted(name: str) -> str:
    """A part of a name, as a statement spells it."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else "`" + name.replace("`", "``") + "`"


def failed(table: str, error: Exception) -> TableError:
    """What is said of a table whose report ended with an error."""
    return TableError(table, _jvm.condition(error), _jvm.message(error))


def _answer(
    spark: SparkSession, tables: Table | Tables, ask: Callable[[str], str]
) -> Report | Reports:
    if isinstance(tables, (str, bytes)) or not isinstance(tables, Sequence):
        name = _jvm.table_name(tables)
        return _report(spark, lambda: ask(name))
    entries: list[Report | TableError] = []
    for name in map(_jvm.table_name, tables):
        try:
            entries.append(_report(spark, partial(ask, name)))
        except TABLE_ERRORS as error:
            entries.append(failed(name, error))
    return Reports(tuple(entries), spark)


def _report(spark: SparkSession, ask: Callable[[], str]) -> Report:
    with _jvm.without_stack():
        return Report.from_json(ask(), spark)
