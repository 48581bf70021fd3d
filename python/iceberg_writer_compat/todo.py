"""What to do about the findings of a report: a short list of steps, in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iceberg_writer_compat import _text
from iceberg_writer_compat.remedy import Remedy, RemedyKind

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


# What the kinds of steps do, in the order in which they are run.
_WHAT: dict[RemedyKind, str] = {
    "properties": "Set properties of the table",
    "default": "Drop the defaults of columns",
    # A constraint would keep its column from being changed.
    "constraint": "Drop constraints",
    "nulls": "Let columns have nulls",
    "change": "Change the table",
    "type": "Change the types of columns",
    "rows": "Change the rows",
    "look": "Find out which commit wrote it; no statement brings the values back",
    # Statements before this one use the old names.
    "rename": "Rename columns",
    "purge": "Write the files with deleted rows anew",
    "drop-feature": "Drop table features",
    # Delta may refuse it until some time has passed.
    "drop-feature-later": "Drop table features that Delta keeps for a time",
    "copy": "Copy the rows into a new table, which has the feature",
    "enable": "Switch the feature on",
    "metadata": "Fix the published metadata",
}
_ORDER = tuple(_WHAT)

_NOTES: dict[RemedyKind, str] = {
    "drop-feature-later": "Delta drops these features only if no version of the retention period, "
    "by default 24 hours, has used them. If it refuses, run this step again after that time."
}


def of(report: Report) -> tuple[ToDo, ...]:
    """The steps that fix the findings of a report, in the order in which they are run."""
    findings = [
        finding
        for finding in _text.ranked(report.findings)
        if finding.remedy.sql and finding.mended_version is None
    ]
    if report.kind == "would_break":
        return _instead(report, findings)
    first: list[Finding] = []
    later: list[Finding] = []
    for finding in findings:
        is_later = not report.enabled and _is_fixed_by_switching_on(finding)
        (later if is_later else first).append(finding)
    copies = [f.remedy for f in first if _kind(f) == "copy"]
    if copies:
        # The new table has none of the problems, except for what is wrong with the rows.
        stays = ("rows", "look", "metadata")
        copied = [f for f in first if _kind(f) not in stays] + later
        copy = ToDo(_WHAT["copy"], _one(copies), tuple(copied))
        steps = [*_steps(f for f in first if _kind(f) in stays), ("copy", copy)]
        return _in_order(report, steps)
    steps = _steps(first)
    if later or (report.kind == "plan" and not report.enabled):
        steps.append(("enable", _switching_on(report, later)))
    return _in_order(report, steps)


def _instead(report: Report, findings: Sequence[Finding]) -> tuple[ToDo, ...]:
    """What to run in place of a statement; or after it, to switch the feature on."""
    # A table that is not there yet gets the feature by the statement that creates it.
    is_off = report.version is not None and not report.enabled
    after = [f for f in findings if is_off and f.severity != "error" and _switches_on(f)]
    instead = _by_remedy(f for f in findings if not any(f is one for one in after))
    steps = [ToDo("Run this instead", remedy, tuple(found)) for remedy, found in instead.items()]
    return (*steps, *([_switching_on(report, after)] if after else []))


def _switches_on(finding: Finding) -> bool:
    return _kind(finding) in ("enable", "properties")


def _in_order(report: Report, steps: list[tuple[RemedyKind, ToDo]]) -> tuple[ToDo, ...]:
    def order(entry: tuple[RemedyKind, ToDo]) -> tuple[bool, int]:
        kind, step = entry
        # While a rule is broken, every other change of a table with the feature is refused.
        waits = report.enabled and all(f.severity != "error" for f in step.findings)
        return waits, _ORDER.index(kind)

    return tuple(step for _, step in sorted(steps, key=order))


def _is_fixed_by_switching_on(finding: Finding) -> bool:
    """Of a table without the feature; see the severities in docs/report.md."""
    kind = _kind(finding)
    if finding.severity == "error":
        return kind == "enable"
    return kind not in ("purge", "metadata")


def _kind(finding: Finding) -> RemedyKind:
    return "metadata" if finding.place.kind == "metadata" else finding.remedy.kind


def _one(copies: Iterable[Remedy]) -> Remedy:
    """One of several copies: the one that leaves out partition columns, which is shorter."""
    return min(copies, key=lambda remedy: len("".join(remedy.sql)))


def _by_remedy(findings: Iterable[Finding]) -> dict[Remedy, list[Finding]]:
    groups: dict[Remedy, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.remedy, []).append(finding)
    return groups


def _steps(findings: Iterable[Finding]) -> list[tuple[RemedyKind, ToDo]]:
    """A step for each kind of remedy and each set of rules that it fixes."""
    groups: dict[tuple[RemedyKind, frozenset[str]], list[list[Finding]]] = {}
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
        remedies[0].kind,
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
    what = _WHAT["enable"]
    if rewrite and report.facts.enabling.types_only:
        what += "; types of columns change, and no data file is written"
    elif rewrite:
        what += "; files that cannot be kept are rewritten"
    calls = [f.remedy for f in findings if _kind(f) == "enable"]
    if calls:
        remedy = _call(list(dict.fromkeys(calls)), rewrite)
    elif report.kind == "plan":
        # Its findings have the statements that the planned call itself runs.
        what, remedy = (
            f"{what}: run the planned call without its dry run",
            Remedy((), (), (), "enable"),
        )
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
        base.kind,
    )
