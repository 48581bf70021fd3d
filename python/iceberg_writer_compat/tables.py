"""Switches the feature on and off, for a table or for the new tables of a session."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, overload

from pyspark.sql import SparkSession

from iceberg_writer_compat import _codec, _jvm, _text
from iceberg_writer_compat._result import Result
from iceberg_writer_compat.remedy import Remedy
from iceberg_writer_compat.report import Report

Mode = Literal["auto", "metadata", "rewrite"]

Drop = Literal[
    "constraints",
    "change-data-feed",
    "defaults",
    "row-tracking",
    "deletion-vectors",
    "checkpoint-protection",
    "generated-columns",
    "identity-columns",
    "invariants",
]


@dataclass(frozen=True)
class EnableWarning:
    """A warning in the result of enabling.

    Attributes:
        text: What is wrong, with the id of the rule; or what failed after the commit.
        remedy: The statements that fix it; none for a failure after the commit.
    """

    text: str
    remedy: Remedy

    def __str__(self) -> str:
        """The text with the Python statements that fix it, in one line."""
        return _text.warning(self)


@dataclass(frozen=True, repr=False)
class EnableResult(Result):
    """The result of enabling.

    Attributes:
        table: The name or path of the table; None for new tables of the session.
        changed: False if the feature was on before.
        version: The newest version of the table; like the mode, None without a table.
        mode: `metadata` or `rewrite`; `none` if the feature was on before.
        files_rewritten: The number of data files that were rewritten.
        bytes_rewritten: Their size before the rewrite.
        files_kept: The number of data files that were kept.
        orphans: Folders of the table with files that belong to no version, from runs that were
            interrupted or lost a race. `VACUUM` removes them.
        warnings: Failures after the commit, which is not undone; or the warnings of `check` for a
            table that has the feature.
        contract: The feature that is on; None without a table.
    """

    table: str | None
    changed: bool
    version: int | None = field(default=None, compare=False)
    mode: Literal["none", "metadata", "rewrite"] | None = field(default=None, compare=False)
    files_rewritten: int = field(default=0, compare=False)
    bytes_rewritten: int = field(default=0, compare=False)
    files_kept: int = field(default=0, compare=False)
    orphans: tuple[str, ...] = field(default=(), compare=False)
    warnings: tuple[EnableWarning, ...] = field(default=(), compare=False)
    contract: str | None = field(default=None, compare=False)

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.switched_on(self)

    def _details(self) -> Iterator[tuple[str, str]]:
        if self.version is not None:
            yield "version", str(self.version)
        if self.files_rewritten:
            yield "rewritten", _text.sized(self.files_rewritten, self.bytes_rewritten)
        if self.files_kept:
            yield "kept", _text.count(self.files_kept, "file")
        for folder in self.orphans:
            yield "left over", f"{folder} belongs to no version; VACUUM removes it"
        for warning in self.warnings:
            yield "warning", warning.text
            yield "fix", str(warning.remedy)


@dataclass(frozen=True, repr=False)
class DisableResult(Result):
    """The result of disabling.

    Attributes:
        table: The name or path of the table; None for new tables of the session.
        changed: False if the feature was off before.
    """

    table: str | None
    changed: bool

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.switched_off(self)


@overload
def enable_iceberg_writer_compat(
    spark: SparkSession,
    table: str | os.PathLike[str] | None = None,
    *,
    mode: Mode = "auto",
    rewrite: bool = False,
    dry_run: Literal[False] = False,
    drop: Collection[str] = (),
    contract: str | None = None,
) -> EnableResult: ...
@overload
def enable_iceberg_writer_compat(
    spark: SparkSession,
    table: str | os.PathLike[str],
    *,
    mode: Mode = "auto",
    rewrite: bool = False,
    dry_run: Literal[True],
    drop: Collection[str] = (),
    contract: str | None = None,
) -> Report: ...
def enable_iceberg_writer_compat(
    spark: SparkSession,
    table: str | os.PathLike[str] | None = None,
    *,
    mode: Mode = "auto",
    rewrite: bool = False,
    dry_run: bool = False,
    drop: Collection[str] = (),
    contract: str | None = None,
) -> EnableResult | Report:
    """Switches `icebergWriterCompatV1` on for a table, given by name or path.

    Without a table, new tables of the session have the feature from now on. An existing table gets
    the feature in one commit, which adds its data files to the log again; files that cannot be kept
    can be rewritten first. Blockers are reported all at once, each with its remedy.

    Args:
        spark: A session that has the extension.
        table: A name or path.
        mode: `metadata` never writes a data file, `rewrite` rewrites files that cannot be kept, and
            `auto` does so only with `rewrite=True`.
        rewrite: Whether `auto` may rewrite data files.
        dry_run: Return the plan as a report, and change nothing.
        drop: The blockers to remove: `constraints`, `change-data-feed`,
            `defaults`, `row-tracking`, `deletion-vectors`, `checkpoint-protection`,
            `generated-columns`, `identity-columns` and `invariants`.
        contract: The feature to switch on, if it is another than `icebergWriterCompatV1`.
    """
    facade = _jvm.require(spark)
    session = spark._jsparkSession
    name = _name(table)
    if name is None:
        if mode != "auto" or rewrite or dry_run or drop or contract is not None:
            raise TypeError("mode, rewrite, dry_run, drop and contract need a table.")
        changed = not facade.isEnabledByDefault(session)
        facade.enableByDefault(session)
        return EnableResult(None, changed)
    if isinstance(drop, str):
        raise TypeError("drop must be a list of names, such as ['constraints'].")
    asked = (session, name, mode, rewrite, list(drop), contract)
    with _jvm.without_stack():
        if dry_run:
            return Report.from_json(facade.upgradePlan(*asked), spark)
        done = _codec.loads(EnableResult, facade.upgrade(*asked))
    return replace(done, table=name)


def disable_iceberg_writer_compat(
    spark: SparkSession, table: str | os.PathLike[str] | None = None
) -> DisableResult:
    """Drops `icebergWriterCompatV1` from a table, given by name or path.

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


def contract_of(spark: SparkSession, table: str | os.PathLike[str]) -> str | None:
    """The feature that a table, given by name or path, has switched on; None if it has none."""
    facade = _jvm.require(spark)
    found = facade.contractOf(spark._jsparkSession, _jvm.table_name(table))
    return None if found is None else str(found)


def _name(table: str | os.PathLike[str] | None) -> str | None:
    return None if table is None else _jvm.table_name(table)
