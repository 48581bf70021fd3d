"""What to do about the findings of a report: a short list of steps, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from iceberg_writer_compat import _text
from iceberg_writer_compat.remedy import Remedy

if TYPE_CHECKING:
    from iceberg_writer_compat.report import Finding, Report


@dataclass(frozen=True)
class ToDo:
    """A step of what to do about the findings of a report.

    Attributes:
        what: What is done.
        remedy: The statements, to be run in this order; empty if the text says what to run.
        findings: The findings that it fixes.
        note: What has to be known before; empty if there is nothing.
    """

    what: str
    remedy: Remedy
    findings: tuple[Finding, ...]
    note: str = ""

    @property
    def rules(self) -> dict[str, int]:
        """The rules that it fixes, each with the number of places."""
        return dict(Counter(finding.rule for finding in self.findings))

    def __str__(self) -> str:
        """The step in one line, without its statements."""
        return _text.to_do(self)


class _Kind(IntEnum):
    """The kinds of steps, in the order in which they are run."""

    PROPERTIES = 0
    # A copy of rows has the defaults of their columns.
    DEFAULT = 1
    # A constraint would keep its column from being changed.
    CONSTRAINT = 2
    NULLS = 3
    CHANGE = 4
    TYPE = 5
    ROWS = 6
    LOOK = 7
    # Statements before this one use the old names.
    RENAME = 8
    PURGE = 9
    DROP_FEATURE = 10
    # Delta may refuse it until some time has passed.
    TRUNCATE = 11
    COPY = 12
    SWITCH_ON = 13
    METADATA = 14


_WHAT = {
    _Kind.PROPERTIES: "Set properties of the table",
    _Kind.DEFAULT: "Drop the defaults of columns",
    _Kind.CONSTRAINT: "Drop constraints",
    _Kind.NULLS: "Let columns have nulls",
    _Kind.CHANGE: "Change the table",
    _Kind.TYPE: "Change the types of columns",
    _Kind.ROWS: "Change the rows",
    _Kind.LOOK: "Find out which commit wrote it; no statement brings the values back",
    _Kind.RENAME: "Rename columns",
    _Kind.PURGE: "Write the files with deleted rows anew",
    _Kind.DROP_FEATURE: "Drop table features",
    _Kind.TRUNCATE: "Drop table features that Delta keeps for a time",
    _Kind.COPY: "Copy the rows into a new table, which has the feature",
    _Kind.SWITCH_ON: "Switch the feature on",
    _Kind.METADATA: "Fix the published metadata",
}
_NOTES = {
    _Kind.TRUNCATE: "Delta drops these features only if no version of the retention period, by "
    "default 24 hours, has used them. If it refuses, run this step again after that time."
}

# What stands after the name of the table, which can have anything between backquotes.
_ALTERATION = re.compile(r"ALTER TABLE (?:`(?:[^`]|``)*`|[^\s`])+ (.*)", re.DOTALL)
_CLAUSES = (
    (re.compile(r"RENAME COLUMN "), _Kind.RENAME),
    (re.compile(r"(?:UN)?SET TBLPROPERTIES "), _Kind.PROPERTIES),
    (re.compile(r"ALTER COLUMN .* DROP DEFAULT$"), _Kind.DEFAULT),
    (re.compile(r"DROP CONSTRAINT "), _Kind.CONSTRAINT),
    (re.compile(r"ALTER COLUMN .* DROP NOT NULL$"), _Kind.NULLS),
    (re.compile(r"ALTER COLUMN .* TYPE "), _Kind.TYPE),
    (re.compile(r"DROP FEATURE .* TRUNCATE HISTORY"), _Kind.TRUNCATE),
    (re.compile(r"DROP FEATURE "), _Kind.DROP_FEATURE),
)
# What stands around the statements of a remedy.
_OF_SESSION = re.compile(r"(?:RE)?SET ")
_STATEMENTS = (
    (re.compile(r"CALL iceberg_writer_compat\.system\.enable\("), _Kind.SWITCH_ON),
    (re.compile(r"CREATE TABLE .* AS SELECT ", re.DOTALL), _Kind.COPY),
    (re.compile(r"REORG TABLE "), _Kind.PURGE),
    (re.compile(r"(?:UPDATE|INSERT) "), _Kind.ROWS),
    (re.compile(r"DESCRIBE HISTORY "), _Kind.LOOK),
)


def of(report: Report) -> tuple[ToDo, ...]:
    """The steps that fix the findings of a report, in the order in which they are run."""
    findings = [
        finding
        for finding in _text.ranked(report.findings)
        if finding.remedy.sql and finding.mended_version is None
    ]
    if report.kind == "would_break":
        return tuple(
            ToDo("Run this instead", remedy, tuple(found))
            for remedy, found in _by_remedy(findings).items()
        )
    first: list[Finding] = []
    later: list[Finding] = []
    for finding in findings:
        is_later = not report.enabled and _is_fixed_by_switching_on(finding)
        (later if is_later else first).append(finding)
    copies = [f.remedy for f in first if _kind(f) == _Kind.COPY]
    if copies:
        # The new table has none of the problems, except for what it takes from the old one.
        stays = (_Kind.DEFAULT, _Kind.ROWS, _Kind.LOOK, _Kind.METADATA)
        copied = [f for f in first if _kind(f) not in stays] + later
        copy = ToDo(_WHAT[_Kind.COPY], _one(copies), tuple(copied))
        steps = [*_steps(f for f in first if _kind(f) in stays), (_Kind.COPY, copy)]
        return _in_order(report, steps)
    steps = _steps(first)
    if later or (report.kind == "plan" and not report.enabled):
        steps.append((_Kind.SWITCH_ON, _switching_on(report, later)))
    return _in_order(report, steps)


def _in_order(report: Report, steps: list[tuple[_Kind, ToDo]]) -> tuple[ToDo, ...]:
    def order(entry: tuple[_Kind, ToDo]) -> tuple[bool, _Kind]:
        kind, step = entry
        # While a rule is broken, every other change of a table with the feature is refused.
        waits = report.enabled and all(f.severity != "error" for f in step.findings)
        return waits, kind

    return tuple(step for _, step in sorted(steps, key=order))


def _is_fixed_by_switching_on(finding: Finding) -> bool:
    """Of a table without the feature; see the severities in docs/report.md."""
    kind = _kind(finding)
    if finding.severity == "error":
        return kind == _Kind.SWITCH_ON
    return kind not in (_Kind.PURGE, _Kind.METADATA)


def _kind(finding: Finding) -> _Kind:
    if finding.place.kind == "metadata":
        return _Kind.METADATA
    statements = (line for line in finding.remedy.sql if not _OF_SESSION.match(line))
    return max(map(_kind_of, statements), default=_Kind.CHANGE)


def _kind_of(statement: str) -> _Kind:
    altered = _ALTERATION.fullmatch(statement)
    kinds, text = (_CLAUSES, altered[1]) if altered else (_STATEMENTS, statement)
    return next((kind for pattern, kind in kinds if pattern.match(text)), _Kind.CHANGE)


def _one(copies: Iterable[Remedy]) -> Remedy:
    """One of several copies: the one that leaves out partition columns, which is shorter."""
    return min(copies, key=lambda remedy: len("".join(remedy.sql)))


def _by_remedy(findings: Iterable[Finding]) -> dict[Remedy, list[Finding]]:
    groups: dict[Remedy, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.remedy, []).append(finding)
    return groups


def _steps(findings: Iterable[Finding]) -> list[tuple[_Kind, ToDo]]:
    """A step for each kind of remedy and each set of rules that it fixes."""
    groups: dict[tuple[_Kind, frozenset[str]], list[list[Finding]]] = {}
    for found in _by_remedy(findings).values():
        rules = frozenset(finding.rule for finding in found)
        groups.setdefault((_kind(found[0]), rules), []).append(found)
    return [
        (
            kind,
            ToDo(
                _WHAT[kind],
                _together([found[0].remedy for found in same]),
                tuple(finding for found in same for finding in found),
                _NOTES.get(kind, ""),
            ),
        )
        for (kind, _), same in groups.items()
    ]


# These stand around statements of one remedy, and are needed around those of the next one too.
_AROUND = re.compile(r"\b(?:RE)?SET spark\.sql\.caseSensitive")


def _together(remedies: Sequence[Remedy]) -> Remedy:
    """All statements of several remedies, each once."""

    def joined(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        kept: dict[object, str] = {}
        for number, statement in enumerate(one for each in lists for one in each):
            around = _AROUND.search(statement)
            kept.setdefault((number, statement) if around else statement, statement)
        return tuple(kept.values())

    return Remedy(
        joined(remedy.sql for remedy in remedies),
        joined(remedy.python for remedy in remedies),
        joined(remedy.command for remedy in remedies),
    )


# --- the call that switches the feature on --------------------------------------------------------

# The options at the end of the call, in each language.
_SQL_OPTIONS = re.compile(
    r"(?:, rewrite => true)?(?:, drop => array\((?P<drop>[^)]*)\))?"
    r"(?P<contract>, contract => '[^']*')?\)$"
)
_PYTHON_OPTIONS = re.compile(
    r"(?:, rewrite=True)?(?:, drop=\[(?P<drop>[^\]]*)\])?(?P<contract>, contract=\"[^\"]*\")?\)$"
)
_COMMAND_OPTIONS = re.compile(
    r"(?P<rewrite> --rewrite)?(?P<drop>(?: --drop [a-z-]+)*)(?P<contract> --contract \S+)?$"
)


def _switching_on(report: Report, findings: Sequence[Finding]) -> ToDo:
    """The last step: one call with the options of all findings that it fixes."""
    rewrite = any(finding.severity == "warning" for finding in findings)
    what = _WHAT[_Kind.SWITCH_ON]
    if rewrite:
        what += "; files that cannot be kept are rewritten"
    calls = [f.remedy for f in findings if _kind(f) == _Kind.SWITCH_ON]
    if calls:
        remedy = _call(list(dict.fromkeys(calls)), rewrite)
    elif report.kind == "plan":
        # Its findings have the statements that the planned call itself runs.
        what, remedy = f"{what}: run the planned call without its dry run", Remedy((), (), ())
    else:
        remedy = findings[0].remedy
    return ToDo(what, remedy, tuple(findings))


def _call(calls: Sequence[Remedy], rewrite: bool) -> Remedy:
    """One call with the options of all of them."""
    dropped: dict[str, None] = {}
    for call in calls:
        found = _COMMAND_OPTIONS.search(call.command[0])
        assert found is not None
        dropped |= dict.fromkeys(found["drop"].split(" --drop ")[1:])
        rewrite = rewrite or found["rewrite"] is not None
    names = list(dropped)
    sql = ", rewrite => true" * rewrite
    python = ", rewrite=True" * rewrite
    command = " --rewrite" * rewrite + "".join(f" --drop {name}" for name in names)
    if names:
        sql += ", drop => array({})".format(", ".join(f"'{name}'" for name in names))
        python += ", drop=[{}]".format(", ".join(f'"{name}"' for name in names))

    def with_options(pattern: re.Pattern[str], call: str, options: str, end: str) -> str:
        return pattern.sub(lambda found: options + (found["contract"] or "") + end, call, count=1)

    base = calls[0]
    return Remedy(
        (*base.sql[:-1], with_options(_SQL_OPTIONS, base.sql[-1], sql, ")")),
        (*base.python[:-1], with_options(_PYTHON_OPTIONS, base.python[-1], python, ")")),
        (*base.command[:-1], with_options(_COMMAND_OPTIONS, base.command[-1], command, "")),
    )
