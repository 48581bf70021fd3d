"""Reports as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from iceberg_writer_compat.bulk import EnableResults, TableProgress
    from iceberg_writer_compat.publishing import PublishResult, PublishStatus
    from iceberg_writer_compat.remedy import Remedy
    from iceberg_writer_compat.report import (
        ConditionText,
        Enabling,
        Facts,
        FileGroup,
        Finding,
        Place,
        Plan,
        Report,
        Reports,
        RuleText,
        Severity,
        Step,
        TableError,
    )
    from iceberg_writer_compat.tables import DisableResult, EnableResult, EnableWarning
    from iceberg_writer_compat.todo import ToDo

Door = Literal["python", "command"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

_DEFAULT_CONTRACT = "icebergWriterCompatV1"
_WIDTH = 100
# A table with thousands of columns can have thousands of violations.
_LISTED = 20


def verdict(report: Report) -> str:
    """The verdict of a report."""
    violations = len(report.violations)
    warnings = sum(finding.severity == "warning" for finding in report.findings)
    counts = [count(violations, "violation")] * (violations > 0)
    counts += [count(warnings, "warning")] * (warnings > 0)
    if report.history is not None:
        return _history_verdict(report)
    if report.plan is not None:
        return _plan_verdict(report.plan, violations)
    if report.kind == "would_break":
        answer = "this would break the rules" if violations else "this would break no rule"
    elif report.compliant:
        answer = "compliant"
    elif violations:
        answer = "not compliant"
    else:
        answer = "not enabled"
    return ": ".join([answer, ", ".join(counts)] if counts else [answer])


def _plan_verdict(plan: Plan, violations: int) -> str:
    return {
        "none": "the feature is on, nothing to do",
        "metadata": "one commit switches the feature on, no data file is written",
        "rewrite": "one commit switches the feature on and changes types, no data file is written"
        if plan.types_only
        else f"{count(plan.files_to_rewrite, 'data file')}, {size(plan.bytes_to_rewrite)}, "
        "would be rewritten",
        "blocked": f"{count(violations, 'blocker')} to remove first",
    }[plan.mode]


def _history_verdict(report: Report) -> str:
    assert report.history is not None
    versions = f"versions {report.history.from_version} to {report.history.to_version}"
    broken = report.violations
    if not broken:
        return f"no rule was broken in {versions}"
    mended = sum(finding.mended_version is not None for finding in broken)
    return f"{count(len(broken), 'violation')} in {versions}, {mended or 'none'} fixed since"


def overall(reports: Reports) -> str:
    """The verdict of several reports."""
    compliant = sum(report.compliant for report in reports.reports)
    counts = {
        "compliant": compliant,
        "not compliant": len(reports.reports) - compliant,
        "could not be read": len(reports.errors),
    }
    listed = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    return f"{count(len(reports), 'table')}: {listed}" if listed else "no tables"


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Findings with the most severe first, otherwise in their order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def by_rule(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by the id of their rule, in their order."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    return groups


def count(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """A number of bytes with a unit."""
    amount, units = float(number), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{number:,} bytes" if units[0] == "bytes" else f"{amount:,.1f} {units[0]}"


def place(value: Place) -> str:
    """A place in one line."""
    details = [f"id {value.id}"] * (value.id is not None)
    details += [f"physical name {value.physical_name}"] * (value.physical_name is not None)
    if value.kind == "property":
        details = ["not set" if value.value is None else value.value]
    words = [value.kind, value.name] if value.name else [value.kind]
    return " ".join(words) + (f" ({', '.join(details)})" if details else "")


def enabling(value: Enabling) -> str:
    """Whether the feature is on, and how it can be switched on."""
    files = sized(value.files_to_rewrite, value.bytes_to_rewrite)
    answer = {
        "enabled": "is on",
        "metadata-only": "is off; enabling needs only a metadata commit",
        "rewrite": "is off; enabling needs only a metadata commit, in which types change"
        if value.types_only
        else f"is off; enabling needs {files} to be rewritten"
        + ("" if value.exact else ", by estimate"),
        "blocked": "is off, and cannot be enabled before blockers are removed",
    }[value.verdict]
    return answer if value.verdict == "enabled" else f"{answer}: {value.reason}"


def facts(value: Facts) -> list[tuple[str, str]]:
    """The facts about a table, each with its name."""
    contents = [count(value.files, "file"), size(value.bytes)]
    if value.rows is not None:
        contents.append(count(value.rows, "row"))
    if value.deletion_vectors:
        contents.append(count(value.deletion_vectors, "deletion vector"))
    highest = "" if value.max_column_id is None else f", highest id {value.max_column_id}"
    listed = [
        ("protocol", f"reader {value.reader_version}, writer {value.writer_version}"),
        *_features(value),
        ("column mapping", f"{value.column_mapping_mode}{highest}"),
        ("partitioned by", ", ".join(value.partition_columns)),
        ("clustered by", ", ".join(value.clustering_columns)),
        ("data", ", ".join(contents)),
    ]
    return [(name, text) for name, text in listed if text]


def _features(value: Facts) -> Iterator[tuple[str, str]]:
    supported = [feature for feature in value.features if feature.supported]
    yield "supported", ", ".join(f.name for f in supported)
    yield "active", ", ".join(f.name for f in supported if f.active)
    yield "enabled", ", ".join(f.name for f in supported if f.enabled)
    yield "not allowed", ", ".join(f.name for f in supported if not f.allowed)


def source(report: Report) -> str:
    """The version and profile of a report."""
    parts = [report.location] if report.location else []
    if report.version is not None:
        time = f" of {report.timestamp:%Y-%m-%d %H:%M:%S %Z}" if report.timestamp else ""
        parts.append(f"version {report.version}{time}")
    parts.append(f"profile {report.profile}")
    return ", ".join(parts)


def audit(report: Report) -> str:
    """What `verify` has read."""
    if report.audit is None:
        return ""
    kind = "a sample of " if report.audit.sampled else ""
    read = count(report.audit.files_read, "file")
    return f"{kind}{read} of {report.audit.files_live:,}, {size(report.audit.bytes)}"


def plan(value: Plan) -> Iterator[tuple[str, str]]:
    """The steps of a plan and its groups of files, each with its name."""
    for step in value.steps:
        yield step.name, step.what + files_of(step)
    for group in value.groups:
        rules = f" ({', '.join(group.rules)})" if group.rules else ""
        listed = "\n".join([f"{group.reason}{rules}", *group.examples])
        yield (
            f"files: {group.verdict}",
            files_of(group).lstrip(": ") + f". {listed}",
        )


def files_of(value: Step | FileGroup) -> str:
    """The number of files of a step, if it is about files, with their size."""
    return "" if value.files is None else f": {sized(value.files, value.bytes or 0)}"


def sized(number: int, amount: int) -> str:
    """A number of files with their size."""
    return f"{count(number, 'file')}, {size(amount)}"


def since(finding: Finding) -> str:
    """The version of a history that broke a rule, and the one that fixed it."""
    if finding.first_version is None:
        return ""
    time = f" of {finding.first_timestamp:%Y-%m-%d %H:%M:%S %Z}" if finding.first_timestamp else ""
    operation = f" by {finding.operation}" if finding.operation else ""
    mended = finding.mended_version
    now = "not fixed" if mended is None else f"fixed in version {mended}"
    return f"version {finding.first_version}{time}{operation}, {now}"


def report(value: Report, door: Door = "python") -> str:
    """A report as text."""
    named = [*facts(value.facts), ("footers read", audit(value))]
    if value.kind != "history":
        named.insert(0, ("the feature", enabling(value.facts.enabling)))
    if value.contract is not None:
        named.insert(0, ("contract", value.contract))
    if value.statement:
        named.insert(0, ("statement", value.statement))
    steps = value.to_do
    lines = [f"{_plain(value.table)}: {_plain(value.verdict)}", f"  {_plain(source(value))}"]
    lines += [*_to_do(steps, door), ""]
    lines += [line for name, text in named for line in _entry(name, text, 18)]
    if value.plan is not None:
        lines += [
            "",
            *(line for name, text in plan(value.plan) for line in _entry(name, text, 18)),
        ]
    numbers = steps_by_finding(steps)
    for severity in SEVERITIES:
        findings = [finding for finding in value.findings if finding.severity == severity]
        for group in by_rule(findings).values():
            lines += ["", *_findings(group, numbers)]
    return "\n".join(lines)


def to_do(value: ToDo) -> str:
    """A step of what to do, without its statements: what it is, and what it fixes."""
    fixed = fixes(value)
    return f"{value.what}; fixes {fixed}" if fixed else value.what


def fixes(value: ToDo) -> str:
    """The rules that a step fixes, with the number of places."""
    several = len(value.rules) > 1
    rules = [f"{rule} ({n:,})" if several and n > 1 else rule for rule, n in value.rules.items()]
    return f"{', '.join(rules)}: {count(len(value.findings), 'place')}" if rules else ""


def steps_by_finding(steps: Sequence[ToDo]) -> dict[int, int]:
    """The number of the step that fixes a finding, by the identity of the finding."""
    return {
        id(finding): number for number, step in enumerate(steps, 1) for finding in step.findings
    }


def _to_do(steps: Sequence[ToDo], door: Door) -> Iterator[str]:
    """What to do, with at most so many statements of a step as are listed of anything."""
    if steps:
        yield from ("", "  what to do")
    for number, step in enumerate(steps, 1):
        yield from _entry(f"  {number}.", str(step), 6)
        yield from _entry("", step.note, 6)
        listed = statements(step.remedy, door)
        yield from _entry("", "\n".join(listed[:_LISTED]), 6, wrap=False)
        if len(listed) > _LISTED:
            more = count(len(listed) - _LISTED, "more statement")
            where = "report.to_do" if door == "python" else "--output report.html"
            yield from _entry("", f"and {more}: see {where}", 6)


def _findings(group: Sequence[Finding], steps: Mapping[int, int]) -> Iterator[str]:
    """The findings of a rule; a reason or step that all of them share is shown once."""
    shown = group[:_LISTED]
    one_reason = len({finding.why for finding in shown}) == 1
    one_step = len({steps.get(id(finding)) for finding in group}) == 1
    yield from _entry(f"{group[0].rule} {group[0].severity}", group[0].required, 12)
    if one_reason:
        yield from _entry("  why", group[0].why, 12)
    for finding in shown:
        files = "" if finding.files is None else f" ({count(finding.files, 'file')})"
        yield from _entry("  at", f"{finding.place}{files}", 12)
        yield from _entry("  found", finding.found, 12)
        for example in finding.examples:
            yield from _entry("", example, 12)
        yield from _entry("  since", since(finding), 12)
        if not one_reason:
            yield from _entry("  why", finding.why, 12)
        if not one_step:
            yield from _fix(finding, steps)
    if len(group) > len(shown):
        yield f"    and {count(len(group) - len(shown), 'more finding')}"
    if one_step:
        yield from _fix(group[0], steps)


def _fix(finding: Finding, steps: Mapping[int, int]) -> list[str]:
    number = steps.get(id(finding))
    return [] if number is None else _entry("  fix", f"step {number}", 12)


def statements(remedy: Remedy, door: Door) -> tuple[str, ...]:
    """The statements of a remedy, for Python or the command line."""
    return remedy.python if door == "python" else remedy.command


def error(value: TableError) -> str:
    """The error of a table that could not be read."""
    return f"{_plain(value.table)}: could not be read\n" + "\n".join(
        f"  {_plain(line)}" for line in value.message.splitlines()
    )


def reports(value: Reports) -> str:
    """Several reports as text."""
    return "\n\n".join([*map(str, value), overall(value)])


def progress(value: TableProgress) -> str:
    """The state of a table in one line."""
    if value.result is not None:
        return switched_on(value.result)
    if value.state == "failed":
        return "failed; the table is unchanged"
    return "not processed in this run"


def switched_on(value: EnableResult) -> str:
    """The verdict of enabling."""
    how = "" if value.changed else ", unchanged"
    if value.files_rewritten:
        how = f", {count(value.files_rewritten, 'data file')} rewritten"
    return f"{value.contract or _DEFAULT_CONTRACT} is on{how}"


def switched_off(value: DisableResult) -> str:
    """The verdict of disabling."""
    return "the feature is off" + ("" if value.changed else ", unchanged")


def published(value: PublishResult) -> str:
    """The verdict of publishing."""
    if not value.changed:
        return f"version {value.delta_version} is published, unchanged"
    files = f"{count(value.files_added, 'file')} added, {value.files_removed:,} removed"
    done = count(value.snapshots, "snapshot")
    return f"version {value.delta_version} is published by {done}: {files}"


def publish_state(value: PublishStatus) -> str:
    """The verdict on the state of publishing."""
    problems = [count(len(value.problems), "problem")] * bool(value.problems)
    if value.published_version is None:
        told = "not published"
    elif not value.lag:
        told = f"version {value.published_version} is published, the newest"
    else:
        told = (
            f"version {value.published_version} is published, {count(value.lag, 'version')} behind"
        )
    return ", ".join([told, *problems])


def result(subject: str, verdict: str, details: Iterable[tuple[str, str]]) -> str:
    """The result of a call as text."""
    lines = [f"{_plain(subject)}: {_plain(verdict)}"]
    lines += [line for name, text in details for line in _entry(name, text, 18, wrap=False)]
    return "\n".join(lines)


def enabled(value: EnableResults) -> str:
    """The verdict of enabling many tables."""
    counts = {"done": len(value.done), "failed": len(value.failed), "left": len(value.left)}
    listed = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    told = f"{count(len(value), 'table')}: {listed}" if listed else "no tables"
    return told + " (interrupted)" * value.interrupted


def warning(value: EnableWarning, door: Door = "python") -> str:
    """A warning with the statements that fix it, in one line."""
    return value.text + "".join(f" Run: {line}" for line in statements(value.remedy, door))


def results(value: EnableResults, door: Door = "python") -> str:
    """The results of enabling many tables as text, with remedies for Python or for commands."""
    lines = [switched(table, door) for table in value]
    return "\n".join(lines if len(value) == 1 else [*lines, *[""] * bool(lines), enabled(value)])


def switched(table: TableProgress, door: Door = "python") -> str:
    """The result of enabling one of many tables as text."""
    lines = [f"{_plain(table.table)}: {table.verdict}"]
    for folder in table.result.orphans if table.result else ():
        lines.append(f"  {_plain(folder)} belongs to no version; VACUUM removes it")
    for found in table.result.warnings if table.result else ():
        lines.append(f"  {_plain(warning(found, door))}")
    if table.error is not None:
        lines += [f"  {_plain(line)}" for line in table.error.message.splitlines()]
    return "\n".join(lines)


def seconds(value: TableProgress) -> str:
    """How long a table took."""
    if value.started is None or value.finished is None:
        return ""
    return f"{(value.finished - value.started).total_seconds():,.1f} s"


def rule(value: RuleText) -> str:
    """The text of a rule."""
    lines = [*_entry(value.rule, value.statement, 9), *_entry("  why", value.why, 9)]
    lines += _entry("  about", value.checked, 9)
    for clause in value.clauses:
        lines += _entry("  source", clause, 9)
    return "\n".join(lines)


def condition(value: ConditionText) -> str:
    """The text of a condition."""
    lines = [f"  {value.condition}"]
    lines += _entry("  SQLSTATE", value.sql_state, 12)
    return "\n".join([*lines, *_entry("  message", value.message, 12)])


def _entry(name: str, text: str, indent: int, wrap: bool = True) -> list[str]:
    """A named text, with its further lines indented; nothing if there is no text."""
    lines = [_plain(line) for line in text.splitlines()]
    if wrap:
        # A name is not broken over lines, so that it can be copied.
        wrapper = textwrap.TextWrapper(
            _WIDTH - indent - 2, break_long_words=False, break_on_hyphens=False
        )
        lines = [part for line in lines for part in wrapper.wrap(line)]
    names = [name, *[""] * len(lines)]
    return [f"  {n:{indent}}{line}".rstrip() for n, line in zip(names, lines, strict=False)]


def _plain(text: str) -> str:
    """Text without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
