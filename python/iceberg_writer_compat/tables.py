"""The feature on tables, and on the new tables of a session."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pyspark.sql import SparkSession

from iceberg_writer_compat import _jvm


@dataclass(frozen=True)
class EnableResult:
    """What enabling did.

    Attributes:
        table: The name or path of the table; None for new tables of the session.
        changed: False if the feature was on before.
    """

    table: str | None
    changed: bool


@dataclass(frozen=True)
class DisableResult:
    """What disabling did.

    Attributes:
        table: The name or path of the table; None for new tables of the session.
        changed: False if the feature was off before.
    """

    table: str | None
    changed: bool


def enable_iceberg_writer_compat(
    spark: SparkSession, table: str | os.PathLike[str] | None = None
) -> EnableResult:
    """Switches `icebergWriterCompatV1` on for a table, given by name or path.

    Without a table, new tables of the session have the feature from now on. A table that holds
    data in a layout the feature does not allow is refused, with everything that stands against
    it.
    """
    facade = _jvm.require(spark)
    name = _name(table)
    if name is not None:
        return EnableResult(name, facade.enable(spark._jsparkSession, name))
    changed = not facade.isEnabledByDefault(spark._jsparkSession)
    facade.enableByDefault(spark._jsparkSession)
    return EnableResult(None, changed)


def disable_iceberg_writer_compat(
    spark: SparkSession, table: str | os.PathLike[str] | None = None
) -> DisableResult:
    """Takes `icebergWriterCompatV1` out of a table, given by name or path.

    Without a table, new tables of the session have the feature only if they ask for it.
    """
    facade = _jvm.require(spark)
    name = _name(table)
    if name is not None:
        return DisableResult(name, facade.disable(spark._jsparkSession, name))
    changed = facade.isEnabledByDefault(spark._jsparkSession)
    facade.disableByDefault(spark._jsparkSession)
    return DisableResult(None, changed)


def is_iceberg_writer_compat_enabled(
    spark: SparkSession, table: str | os.PathLike[str] | None = None
) -> bool:
    """Whether a table, given by name or path, has `icebergWriterCompatV1` switched on.

    Without a table, whether new tables of the session have it by default.
    """
    facade = _jvm.require(spark)
    name = _name(table)
    if name is None:
        return bool(facade.isEnabledByDefault(spark._jsparkSession))
    return bool(facade.isEnabled(spark._jsparkSession, name))


def _name(table: str | os.PathLike[str] | None) -> str | None:
    return None if table is None else _jvm.table_name(table)
