"""Reports as frozen dataclasses, and their representations.

The JVM makes a report as JSON; this module reads and shows it. Rules, texts and severities come
from the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, overload

from pyspark.sql import DataFrame, SparkSession

from iceberg_writer_compat import _codec, _html, _text, todo
from iceberg_writer_compat.exceptions import NoActiveSessionError
from iceberg_writer_compat.remedy import Remedy

Kind = Literal["check", "verify", "would_break", "history", "plan"]
Severity = Literal["error", "warning", "info"]
PlaceKind = Literal[
    "column", "property", "feature", "protocol", "file", "files", "metadata", "statement"
]


@dataclass(frozen=True)
class Place:
    """The place of a finding.

    Attributes:
        kind: The kind of the place.
        name: The SQL path of a column, the key of a property, the name of a feature, or the path
            of a file; empty for the protocol.
        id: The id of a column.
        physical_name: The physical name of a column.
        value: The value of a property; None if it is not set.
    """

    kind: PlaceKind
    name: str
    id: int | None
    physical_name: str | None
    value: str | None

    def __str__(self) -> str:
        """The place in one line."""
        return _text.place(self)


@dataclass(frozen=True)
class Finding:
    """A violation of a rule, or a fact worth knowing.

    Attributes:
        rule: The id of the rule, as `explain` takes it.
        clauses: The sources of the rule.
        severity: `error`, `warning` or `info`; docs/report.md describes them.
        place: The place of the finding.
        files: The number of data files concerned.
        examples: The paths of at most five of them.
        found: What was found.
        required: The requirement.
        why: What goes wrong otherwise.
        remedy: The statements that fix it.
        first_version: The version that broke the rule; of a history.
        first_timestamp: The time of that version; of a history.
        operation: The operation that wrote that version; of a history.
        mended_version: The version that fixed it; of a history.
    """

    rule: str
    clauses: tuple[str, ...]
    severity: Severity
    place: Place
    files: int | None
    examples: tuple[str, ...]
    found: str
    required: str
    why: str
    remedy: Remedy
    first_version: int | None
    first_timestamp: datetime | None
    operation: str | None
    mended_version: int | None

    @property
    def fix(self) -> list[str]:
        """The Python statements that fix it, to be run in this order."""
        return list(self.remedy.python)


@dataclass(frozen=True)
class Feature:
    """A table feature.

    Attributes:
        name: Its name in the protocol.
        supported: Whether the protocol lists it.
        active: Whether it is in use.
        enabled: Whether its table property is `true`; None if it has no property.
        allowed: Whether the contract lets a table have it.
    """

    name: str
    supported: bool
    active: bool
    enabled: bool | None
    allowed: bool


@dataclass(frozen=True)
class Enabling:
    """How the feature can be switched on.

    Attributes:
        verdict: `enabled` if the feature is already on.
        reason: The reason of the verdict.
        files_to_rewrite: The number of data files that have to be rewritten.
        bytes_to_rewrite: Their size.
        exact: False if the figures are estimated from metadata.
        types_only: Whether columns get other types, for which no data file has to be written.
    """

    verdict: Literal["enabled", "metadata-only", "rewrite", "blocked"]
    reason: str
    files_to_rewrite: int
    bytes_to_rewrite: int
    exact: bool
    types_only: bool


@dataclass(frozen=True)
class Facts:
    """General facts about a table."""

    reader_version: int
    writer_version: int
    features: tuple[Feature, ...]
    column_mapping_mode: str
    max_column_id: int | None
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    files: int
    bytes: int
    rows: int | None
    deletion_vectors: int
    enabling: Enabling


@dataclass(frozen=True)
class Column:
    """A node of the schema: a field, or the element, key or value of a list or map."""

    name: str
    path: tuple[str, ...]
    role: Literal["field", "element", "key", "value"]
    type: str
    nullable: bool
    id: int | None
    physical_name: str | None
    partition: bool


@dataclass(frozen=True)
class Audit:
    """What `verify` has read."""

    files_live: int
    files_read: int
    bytes: int
    sampled: bool


@dataclass(frozen=True)
class History:
    """The versions that `history` has read."""

    from_version: int
    to_version: int


@dataclass(frozen=True)
class Step:
    """A step of a plan.

    Attributes:
        name: The kind of the step; `drop` is a statement that is run first.
        what: What is done.
        files: The number of files concerned; None if the step is not about files.
        bytes: Their size.
    """

    name: str
    what: str
    files: int | None
    bytes: int | None


@dataclass(frozen=True)
class FileGroup:
    """Live data files with the same verdict for the same reasons.

    Attributes:
        verdict: `keep`, `rewrite`, or `blocked` if a rewrite would not help.
        reason: The reason of the verdict.
        rules: The rules that they would break without a rewrite.
        files: The number of files.
        bytes: Their size.
        examples: The paths of at most five of them.
    """

    verdict: Literal["keep", "rewrite", "blocked"]
    reason: str
    rules: tuple[str, ...]
    files: int
    bytes: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The plan to switch the feature on for a table.

    Attributes:
        mode: `none` if it is on, `metadata` if no data file is written, `rewrite` or `blocked`.
        steps: What is done, in this order.
        groups: What is done with the data files.
        files_to_rewrite: The number of data files that have to be rewritten.
        bytes_to_rewrite: Their size.
        types_only: Whether columns get other types, for which no data file has to be written.
        remedies: The remedies of the blockers: with `drop`, they are run first; otherwise the user
            has to run them.
    """

    mode: Literal["none", "metadata", "rewrite", "blocked"]
    steps: tuple[Step, ...]
    groups: tuple[FileGroup, ...]
    files_to_rewrite: int
    bytes_to_rewrite: int
    types_only: bool
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True)
class Report:
    """A report on one table.

    Attributes:
        kind: The function that made the report.
        table: The table, as written in statements.
        location: Its folder; None if the table does not exist yet.
        version: The version that was checked; None if the table does not exist yet.
        timestamp: The time of that version.
        profile: The profile that was applied.
        enabled: Whether the feature is on.
        contract: The feature by which the table is guarded; None if it is not guarded.
        compliant: Whether the feature is on and no finding is an `error`.
        statement: The statement that was passed to `would_break`.
        facts: General facts about the table.
        columns: The schema, parents before children.
        findings: All findings.
        audit: What `verify` has read.
        history: The versions that `history` has read.
        plan: The plan to switch the feature on; of a dry run.
    """

    kind: Kind
    table: str
    location: str | None
    version: int | None
    timestamp: datetime | None
    profile: str
    enabled: bool
    contract: str | None
    compliant: bool
    statement: str | None
    facts: Facts
    columns: tuple[Column, ...]
    findings: tuple[Finding, ...]
    audit: Audit | None
    history: History | None
    plan: Plan | None = None
    _spark: SparkSession | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], spark: SparkSession | None = None) -> Report:
        """Reads a report; the session is the one that `to_df` uses."""
        _codec.require_format(value)
        report = _codec.decode(cls, {"plan": None, **value}, "report")
        object.__setattr__(report, "_spark", spark)
        return report

    @classmethod
    def from_json(cls, text: str, spark: SparkSession | None = None) -> Report:
        """Reads a report from JSON; the session is the one that `to_df` uses."""
        return cls.from_dict(json.loads(text), spark)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that break a rule."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def to_do(self) -> tuple[todo.ToDo, ...]:
        """The steps that fix the findings, in the order in which they are run."""
        return todo.of(self)

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts and lists, which `from_dict` reads."""
        return {"format": _codec.FORMAT, **_codec.encode(self)}

    def to_json(self) -> str:
        """The report as JSON."""
        return _codec.dumps(self.to_dict())

    def to_df(self) -> DataFrame:
        """The findings as a DataFrame, with the columns of the SQL functions."""
        return _data_frame((self,), self._spark)

    def to_html(self) -> str:
        """The report as an HTML page without external resources."""
        return _html.page(Reports((self,)))

    def _repr_html_(self) -> str:
        return _html.fragment(Reports((self,)))

    def __repr__(self) -> str:
        """The verdict; `str` has everything."""
        return f"<{type(self).__name__} {self.table}: {self.verdict}>"

    def __str__(self) -> str:
        """The report as text."""
        return _text.report(self)

    def __getstate__(self) -> dict[str, Any]:
        """A copy or pickle does not contain the session."""
        return vars(self) | {"_spark": None}


@dataclass(frozen=True)
class TableError:
    """A table that could not be read.

    Attributes:
        table: The name or path as it was given.
        condition: The error's condition, if it has one.
        message: What went wrong.
    """

    table: str
    condition: str | None
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The error as a dict."""
        error = {"condition": self.condition, "message": self.message}
        return {"table": self.table, "error": error}

    def __str__(self) -> str:
        """The error as text."""
        return _text.error(self)


@dataclass(frozen=True)
class Reports(Sequence["Report | TableError"]):
    """Reports on several tables, in the order in which they were given."""

    entries: tuple[Report | TableError, ...]
    _spark: SparkSession | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], spark: SparkSession | None = None) -> Reports:
        """Reads the result of `to_dict`; `to_df` uses the session."""
        _codec.require_format(value)
        entries = (
            _codec.decode(TableError, {"table": entry["table"], **entry["error"]}, "error")
            if "error" in entry
            else Report.from_dict(entry, spark)
            for entry in value["tables"]
        )
        return cls(tuple(entries), spark)

    @property
    def compliant(self) -> bool:
        """Whether every table could be read and complies."""
        return all(isinstance(entry, Report) and entry.compliant for entry in self.entries)

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports on tables that could be read."""
        return tuple(entry for entry in self.entries if isinstance(entry, Report))

    @property
    def errors(self) -> tuple[TableError, ...]:
        """The errors of tables that could not be read."""
        return tuple(entry for entry in self.entries if isinstance(entry, TableError))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, of all tables."""
        return tuple(finding for report in self.reports for finding in report.findings)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that break a rule, of all tables."""
        return tuple(finding for report in self.reports for finding in report.violations)

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.overall(self)

    def to_dict(self) -> dict[str, Any]:
        """The reports as dicts and lists, which `from_dict` reads."""
        tables = [entry.to_dict() for entry in self.entries]
        return {"format": _codec.FORMAT, "compliant": self.compliant, "tables": tables}

    def to_json(self) -> str:
        """The reports as JSON."""
        return _codec.dumps(self.to_dict())

    def to_df(self) -> DataFrame:
        """All findings as a DataFrame, with the columns of the SQL functions.

        A table that could not be read is a row of severity `error` without a rule.
        """
        return _data_frame(self.entries, self._spark)

    def to_html(self) -> str:
        """The reports as an HTML page without external resources."""
        return _html.page(self)

    def _repr_html_(self) -> str:
        return _html.fragment(self)

    def __repr__(self) -> str:
        """The verdict; `str` has everything."""
        return f"<{type(self).__name__} {self.verdict}>"

    def __str__(self) -> str:
        """The reports as text."""
        return _text.reports(self)

    def __len__(self) -> int:
        """The number of tables."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Report | TableError]:
        """The reports and errors in order."""
        return iter(self.entries)

    @overload
    def __getitem__(self, index: int) -> Report | TableError: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Report | TableError]: ...
    def __getitem__(
        self, index: int | slice
    ) -> Report | TableError | Sequence[Report | TableError]:
        """The report or error at an index, or several of them."""
        return self.entries[index]

    def __getstate__(self) -> dict[str, Any]:
        """A copy or pickle does not contain the session."""
        return vars(self) | {"_spark": None}


@dataclass(frozen=True)
class RuleText:
    """The text of a rule.

    Attributes:
        rule: Its id.
        statement: The requirement.
        why: What goes wrong otherwise.
        clauses: Its sources.
        checked: What it applies to: a version of the table, a change, an action, or a data file.
    """

    rule: str
    statement: str
    why: str
    clauses: tuple[str, ...]
    checked: Literal["table", "change", "action", "data file"]

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RuleText:
        """Reads the text of a rule."""
        return _codec.decode(cls, value, "rule")

    def to_dict(self) -> dict[str, Any]:
        """The text as a dict."""
        return dict(_codec.encode(self))

    def __str__(self) -> str:
        """The rule as text."""
        return _text.rule(self)


@dataclass(frozen=True)
class ConditionText:
    """The text of a condition, which errors have.

    Attributes:
        condition: Its name, with the sub-condition behind a dot.
        sql_state: Its SQLSTATE.
        message: The message, with a name in angle brackets for each value.
    """

    condition: str
    sql_state: str
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The text as a dict."""
        return dict(_codec.encode(self))

    def __str__(self) -> str:
        """The condition as text."""
        return _text.condition(self)


# --- DataFrame ------------------------------------------------------------------------------------

_COLUMNS = (
    "table_name STRING, table_version BIGINT, rule STRING, severity STRING, "
    "clauses ARRAY<STRING>, place_kind STRING, place STRING, column_id BIGINT, "
    "physical_name STRING, value STRING, files BIGINT, examples ARRAY<STRING>, found STRING, "
    "required STRING, why STRING, fix ARRAY<STRING>"
)
_HISTORY_COLUMNS = (
    ", first_version BIGINT, first_timestamp TIMESTAMP, operation STRING, mended_version BIGINT"
)


def _data_frame(entries: Sequence[Report | TableError], spark: SparkSession | None) -> DataFrame:
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise NoActiveSessionError("There is no active Spark session to make a DataFrame with.")
    history = any(isinstance(entry, Report) and entry.kind == "history" for entry in entries)
    schema = _COLUMNS + (_HISTORY_COLUMNS if history else "")
    return session.createDataFrame([row for entry in entries for row in _rows(entry)], schema)


def _rows(entry: Report | TableError) -> Iterator[dict[str, Any]]:
    if isinstance(entry, TableError):
        yield {
            "table_name": entry.table,
            "severity": "error",
            "place_kind": "table",
            "place": entry.table,
            "found": entry.message,
        }
        return
    for finding in entry.findings:
        values = {name: getattr(finding, name) for name in _codec.types_of(Finding)}
        yield values | {
            "fix": finding.fix,
            "table_name": entry.table,
            "table_version": entry.version,
            "place_kind": finding.place.kind,
            "place": finding.place.name,
            "column_id": finding.place.id,
            "physical_name": finding.place.physical_name,
            "value": finding.place.value,
        }
