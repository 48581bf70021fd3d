"""Reports as HTML: a page without external resources, or a fragment for a notebook."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from iceberg_writer_compat import _proof_text, _text

if TYPE_CHECKING:
    from iceberg_writer_compat.bulk import EnableResults
    from iceberg_writer_compat.proving.proof import Proof, Status
    from iceberg_writer_compat.report import (
        Column,
        Finding,
        Plan,
        Report,
        Reports,
        Severity,
        Step,
        TableError,
    )
    from iceberg_writer_compat.todo import ToDo

_LISTED = 20
# So many groups of errors are open when a page is loaded.
_OPENED = 5

# How a table stands, with the colour, in the order of a page.
_STANDINGS = {
    "complies": "good",
    "one commit away": "info",
    "needs a rewrite": "warning",
    "blocked": "error",
    "breaks a rule": "error",
    "could not be read": "error",
}

# The colour of each status, the most severe first.
_MARKS: dict[Status, str] = {
    "differs": "error",
    "could not run": "error",
    "known fault": "warning",
    "agrees": "good",
}


@dataclass(frozen=True)
class _Bar:
    """The number of findings of a rule by severity, as fractions of the longest bar."""

    rule: str
    required: str
    total: int
    parts: tuple[tuple[Severity, float], ...]


@dataclass(frozen=True)
class _Group:
    """Findings of one rule and severity that the same step fixes."""

    severity: Severity
    rule: str
    step: int | None
    findings: tuple[Finding, ...]
    opens: bool

    @property
    def reasons(self) -> list[str]:
        """Why they matter, each reason once."""
        return list(dict.fromkeys(finding.why for finding in self.findings))


@dataclass(frozen=True)
class _Branch:
    """A column in the tree, with its findings, and whether a column below it has findings."""

    column: Column
    depth: int
    problems: tuple[tuple[str, Severity], ...]
    marked: bool


def page(reports: Reports, door: _text.Door = "python") -> str:
    """A page, with remedies for Python or for the command line."""
    return _render(
        "report.html",
        reports=reports,
        severities=_text.SEVERITIES,
        door=door,
        brief=len(reports) > _LISTED,
    )


def results(value: EnableResults, door: _text.Door = "python") -> str:
    """A page with the results of enabling many tables, for Python or for the command line."""
    return _render("results.html", results=value, door=door)


def _render(template: str, **values: object) -> str:
    loader = _environment().loader
    assert loader is not None
    script, style = (
        Markup(loader.get_source(_environment(), name)[0]) for name in ("report.js", "report.css")
    )
    # Names in a table can then not run as a script, even if they were not escaped.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            script=script,
            style=style,
            script_hash=f"sha256-{digest}",
            version=version("iceberg-writer-compat"),
            made=datetime.now(timezone.utc),
            **values,
        )
    )


def fragment(reports: Reports) -> str:
    """A short report for notebooks."""
    return _environment().get_template("notebook.html").render(reports=reports)


def result(subject: str, verdict: str, details: Sequence[tuple[str, str]]) -> str:
    """The result of a call for notebooks."""
    template = _environment().get_template("notebook_result.html")
    return template.render(subject=subject, verdict=verdict, details=details)


def text(value: str) -> str:
    """A text for notebooks."""
    return str(Markup("<pre>{}</pre>").format(value))


def proof_page(proof: Proof) -> str:
    """A page with a proof."""
    return _render("proof.html", **_of_proof(proof))


def proof_fragment(proof: Proof) -> str:
    """A short proof for notebooks."""
    return _environment().get_template("notebook_proof.html").render(**_of_proof(proof))


def _of_proof(proof: Proof) -> dict[str, object]:
    found = {outcome.status for outcome in proof.outcomes}
    if any(d.fault is not None for outcome in proof.outcomes for d in outcome.differences):
        found.add("known fault")
    return {
        "proof": proof,
        "readers": [reader for reader in proof.readers if reader.library is not None],
        "checks": _proof_text.CHECKS,
        "marks": _MARKS,
        "troubles": [status for status in _MARKS if status != "agrees" and status in found],
    }


def _of_column(proof: Proof, reader: str, column: str) -> Status:
    """The status of a column whose checksum differs."""
    outcome = proof.outcome(reader, "values")
    found = [d for d in outcome.differences if d.place == column] if outcome else []
    is_known = bool(found) and all(difference.fault is not None for difference in found)
    return "known fault" if is_known else "differs"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("iceberg_writer_compat"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "audit": _text.audit,
        "bars": _bars,
        "cell": _proof_text.cell,
        "count": _text.count,
        "counts": _counts,
        "enabling": _text.enabling,
        "facts": _text.facts,
        "files": _text.files_of,
        "fixes": _text.fixes,
        "groups": _groups,
        "is_statement": _is_statement,
        "numbers": _numbers,
        "of_column": _of_column,
        "proof_source": _proof_text.source,
        "quoted": _quoted,
        "ranked": _text.ranked,
        "rules": lambda findings: list(_text.by_rule(_text.ranked(findings)).values()),
        "seconds": _text.seconds,
        "since": _text.since,
        "size": _text.size,
        "sized": _text.sized,
        "source": _text.source,
        "standing": _standing,
        "state": _state,
        "statements": _text.statements,
        "totals": _totals,
        "tree": lambda report: list(_tree(report)),
    }
    environment.globals |= {"listed": _LISTED, "standings": _STANDINGS}
    return environment


def _quoted(text: str) -> Markup:
    """Text in which backquoted parts are code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _state(report: Report) -> str:
    if report.compliant:
        return "good"
    return "bad" if report.violations else "off"


def _standing(entry: Report | TableError) -> str:
    # That module imports this one.
    from iceberg_writer_compat import report as _report

    if isinstance(entry, _report.TableError):
        return "could not be read"
    if entry.compliant:
        return "complies"
    enabling = entry.facts.enabling
    return {
        "enabled": "breaks a rule",
        "metadata-only": "one commit away",
        "rewrite": "one commit away" if enabling.types_only else "needs a rewrite",
        "blocked": "blocked",
    }[enabling.verdict]


def _totals(reports: Reports) -> list[tuple[str, int]]:
    """How many tables stand in each way."""
    counts = Counter(map(_standing, reports))
    return [(name, counts[name]) for name in _STANDINGS if counts[name]]


def _groups(report: Report, steps: Sequence[ToDo]) -> list[_Group]:
    """The findings by severity, step and rule."""
    numbers = _text.steps_by_finding(steps)
    groups: dict[tuple[Severity, int | None, str], list[Finding]] = {}
    for finding in report.findings:
        key = (finding.severity, numbers.get(id(finding)), finding.rule)
        groups.setdefault(key, []).append(finding)

    def order(key: tuple[Severity, int | None, str]) -> tuple[int, int]:
        severity, step, _ = key
        return _text.SEVERITIES.index(severity), len(steps) + 1 if step is None else step

    return [
        _Group(
            severity,
            rule,
            step,
            tuple(groups[severity, step, rule]),
            severity == "error" and n < _OPENED,
        )
        for n, (severity, step, rule) in enumerate(sorted(groups, key=order))
    ]


def _numbers(steps: Sequence[ToDo]) -> Callable[[Finding], int | None]:
    """The number of the step that fixes a finding."""
    numbers = _text.steps_by_finding(steps)
    return lambda finding: numbers.get(id(finding))


def _is_statement(step: Step, plan: Plan) -> bool:
    return any(step.what in remedy.sql for remedy in plan.remedies)


def _counts(report: Report) -> Counter[str]:
    return Counter(finding.severity for finding in report.findings)


def _bars(findings: Sequence[Finding]) -> list[_Bar]:
    groups = _text.by_rule(_text.ranked(findings))
    longest = max(map(len, groups.values()), default=1)
    return [_bar(group, longest) for group in groups.values()]


def _bar(findings: list[Finding], longest: int) -> _Bar:
    counts = Counter(finding.severity for finding in findings)
    parts = tuple((s, 100 * counts[s] / longest) for s in _text.SEVERITIES if counts[s])
    return _Bar(findings[0].rule, findings[0].required, len(findings), parts)


def _tree(report: Report) -> Iterator[_Branch]:
    problems: dict[str, dict[tuple[str, Severity], None]] = {}
    for finding in _text.ranked(report.findings):
        if finding.place.kind == "column":
            found = problems.setdefault(finding.place.name, {})
            found[finding.rule, finding.severity] = None
    leading = {
        column.path[:length]
        for column in report.columns
        if column.name in problems
        for length in range(1, len(column.path) + 1)
    }
    for column in report.columns:
        yield _Branch(
            column,
            len(column.path) - 1,
            tuple(problems.get(column.name, ())),
            column.path in leading,
        )
