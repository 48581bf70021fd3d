"""Reports as values, text and JSON, from JSON as the JVM writes it."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import FrozenInstanceError, replace
from datetime import datetime, timezone
from typing import Any

import pytest
from markupsafe import escape
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import report_samples as samples
from iceberg_writer_compat import (
    DisableResult,
    EnableResult,
    EnableResults,
    EnableWarning,
    Feature,
    IcebergWriterCompatError,
    Proof,
    PublishProblem,
    PublishResult,
    PublishStatus,
    Remedy,
    Report,
    Reports,
    RuleText,
    TableError,
    TableProgress,
    UnknownReportFormatError,
    _text,
)
from iceberg_writer_compat.remedy import RemedyKind

GONE = TableError("db.gone", "TABLE_OR_VIEW_NOT_FOUND", "The table db.gone cannot be found.")


def several(spark: SparkSession | None = None) -> Reports:
    return Reports(
        (Report.from_dict(samples.broken()), Report.from_dict(samples.report()), GONE), spark
    )


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [samples.report(), samples.broken(), samples.past()])
def test_nothing_is_lost(sample: samples.Json) -> None:
    report = Report.from_dict(sample)
    written = report.to_dict()
    for finding in written["findings"]:
        time = finding["first_timestamp"]
        finding["first_timestamp"] = time and time.replace(".250000", ".250")
    assert written == sample
    assert list(written) == list(sample)
    assert Report.from_json(report.to_json()) == report


def test_values_are_typed() -> None:
    report = Report.from_dict(samples.broken())
    assert report.timestamp == datetime(2026, 11, 18, 12, tzinfo=timezone.utc)
    assert report.facts.features[0] == Feature("columnMapping", True, True, True, True)
    assert report.columns[3].path == ("s", "l", "element")
    assert report.findings[0].place.physical_name == "col-1"
    assert not report.compliant
    assert [finding.rule for finding in report.findings] == ["C7", "C5", "B4", "A3", "E8"]
    assert [finding.rule for finding in report.violations] == ["C7", "C5", "E8"]
    with pytest.raises(FrozenInstanceError):
        report.compliant = True  # type: ignore[misc]
    assert len({report, Report.from_dict(samples.broken())}) == 1


def test_what_later_versions_add_is_passed_over() -> None:
    assert Report.from_dict(samples.report(more=1)) == Report.from_dict(samples.report())


@pytest.mark.parametrize("found", [0, 1, "2", None, True])
def test_another_format_is_refused(found: object) -> None:
    for read in (Report.from_dict, Reports.from_dict):
        with pytest.raises(UnknownReportFormatError, match="format") as refused:
            read(samples.report(format=found, tables=[]))
        assert isinstance(refused.value, IcebergWriterCompatError)
        assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("version",), "12", r"report\.version is '12'"),
        (("enabled",), 1, r"report\.enabled is 1"),
        (("kind",), "guess", r"report\.kind is 'guess'"),
        (("findings", 1, "severity"), "fatal", r"report\.findings\[1\]\.severity is 'fatal'"),
        (("findings", 0, "examples"), "ab", r"report\.findings\[0\]\.examples is 'ab'"),
        (("facts",), None, r"report\.facts is None"),
        (("facts", "files"), True, r"report\.facts\.files is True"),
        (("columns", 2, "path", 0), 7, r"report\.columns\[2\]\.path\[0\] is 7"),
    ],
)
def test_wrong_values_are_refused(path: tuple[Any, ...], value: object, said: str) -> None:
    sample: Any = samples.broken()
    inner = sample
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(ValueError, match=said):
        Report.from_dict(sample)


def test_missing_values_are_refused() -> None:
    sample = samples.broken()
    del sample["findings"][0]["place"]["value"]
    with pytest.raises(ValueError, match=r"report\.findings\[0\]\.place has no value"):
        Report.from_dict(sample)


def test_the_session_is_no_part_of_the_value(spark: SparkSession) -> None:
    for plain, held in (
        (Report.from_dict(samples.report()), Report.from_dict(samples.report(), spark)),
        (several(), several(spark)),
    ):
        assert held == plain
        assert hash(held) == hash(plain)
        assert "SparkSession" not in repr(held)
        assert pickle.loads(pickle.dumps(held)) == plain
        assert copy.deepcopy(held) == plain


def test_several_tables() -> None:
    reports = several()
    assert [entry.table for entry in reports] == ["spark_catalog.db.t"] * 2 + ["db.gone"]
    assert len(reports) == 3
    assert reports[-1] is GONE
    assert reports.errors == (GONE,)
    assert [report.compliant for report in reports.reports] == [False, True]
    assert not reports.compliant
    assert len(reports.findings) == 5
    assert len(reports.violations) == 3
    assert Reports(reports.entries[1:2]).compliant
    assert not Reports((GONE,)).compliant
    written = json.loads(reports.to_json())
    assert written["compliant"] is False
    assert written["tables"][2] == {
        "table": "db.gone",
        "error": {"condition": GONE.condition, "message": GONE.message},
    }
    assert Reports.from_dict(written) == reports


# --- text -----------------------------------------------------------------------------------------


def test_text() -> None:
    lines = str(Report.from_dict(samples.broken())).splitlines()
    assert lines[0] == "spark_catalog.db.t: not compliant: 3 violations, 1 warning"
    assert lines[1] == ("  file:/warehouse/t, version 12 of 2026-11-18 12:00:00 UTC, profile rfc")
    text = "\n".join(lines)
    for wanted in (
        "  contract          icebergWriterCompatV1",
        "  the feature       is on",
        "  protocol          reader 2, writer 7",
        "  supported         columnMapping, invariants, deletionVectors",
        "  active            columnMapping",
        "  enabled           columnMapping",
        "  not allowed       deletionVectors",
        "  column mapping    id, highest id 4",
        "  partitioned by    p",
        "  data              1,200 files, 117.7 MiB, 1,000,000 rows",
        "  C7 error    Every type is one of integer, long and so on.",
        "    why       An Iceberg reader could not read the column.",
        "    at        column a (id 1, physical name col-1)",
        "    found     column `a` has the type SMALLINT, which Iceberg does not have.",
        "  what to do",
        "    1.  Change the types of columns; fixes C7, C5: 2 places",
        '        spark.sql("ALTER TABLE db.t ALTER COLUMN a TYPE INT")',
        "    fix       step 1",
        "    at        property delta.columnMapping.maxColumnId (3)",
        "    at        files (17 files)",
        "              part-00000.parquet: 5 rows in the footer, 6 in the log",
    ):
        assert wanted in lines, text


def test_findings_of_a_rule_stand_together() -> None:
    findings = [samples.finding(rule) for rule in ("C7", "C5", "C7")]
    text = str(Report.from_dict(samples.report(*findings)))
    assert text.count("C7 error") == text.count("C5 error") == 1
    assert text.count("    at ") == 3
    assert text.count("    fix ") == text.count("    why ") == 2
    assert text.count("ALTER COLUMN a TYPE INT") == 1
    findings[2] |= {"remedy": samples.remedy("DROP TABLE t"), "why": "For another reason."}
    text = str(Report.from_dict(samples.report(*findings)))
    assert text.count("    fix ") == text.count("    why ") == 3


ENABLE = "enable_iceberg_writer_compat(spark, "


def to_enable(table: str = "db.t", rewrite: bool = False, drop: str = "") -> samples.Json:
    """The remedy that switches the feature on, as the JVM writes it."""
    sql = ", rewrite => true" * rewrite + f", drop => array('{drop}')" * bool(drop)
    python = ", rewrite=True" * rewrite + f', drop=["{drop}"]' * bool(drop)
    command = " --rewrite" * rewrite + f" --drop {drop}" * bool(drop)
    return {
        "kind": "enable",
        "sql": [f"CALL iceberg_writer_compat.system.enable(table => '{table}'{sql})"],
        "python": [f'{ENABLE}"{table}"{python})'],
        "command": [f"iceberg-writer-compat enable '{table}'{command}"],
    }


def off(*findings: samples.Json, **changes: Any) -> Report:
    """A report on a table without the feature."""
    changes = {"enabled": False, "compliant": False, "contract": None} | changes
    return Report.from_dict(samples.report(*findings, **changes))


def finding(rule: str, severity: str, kind: RemedyKind, *statements: str) -> samples.Json:
    mended = {
        "kind": kind,
        "sql": list(statements),
        "python": [f'spark.sql("{statement}")' for statement in statements],
        "command": list(statements),
    }
    return samples.finding(rule, severity, remedy=mended)


def test_what_to_do_is_a_short_list_in_order() -> None:
    widen = "ALTER TABLE db.`a b` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    alter = "ALTER TABLE db.`a b`"
    report = off(
        samples.finding("B1", "info", remedy=to_enable()),
        samples.finding("C10", remedy=to_enable(drop="identity-columns")),
        samples.finding("C11", remedy=to_enable(drop="generated-columns")),
        finding(
            "A6",
            "error",
            "drop-feature-later",
            f"{alter} DROP FEATURE deletionVectors TRUNCATE HISTORY",
        ),
        finding("A6", "error", "drop-feature", f"{alter} DROP FEATURE rowTracking"),
        finding("N2", "error", "rename", f"{alter} RENAME COLUMN _row_id TO row_id"),
        finding("C7", "error", "type", widen, f"{alter} ALTER COLUMN x TYPE INT"),
        finding("C7", "error", "type", widen, f"{alter} ALTER COLUMN y TYPE INT"),
        samples.finding("C1", "warning", remedy=to_enable(rewrite=True)),
        finding("D5", "warning", "purge", "REORG TABLE db.`a b` APPLY (PURGE)"),
        # The footers offer a copy, which is not needed where files may be rewritten.
        finding("E4", "warning", "copy", "CREATE TABLE c USING delta AS SELECT * FROM t"),
        finding("B8", "error", "constraint", f"{alter} DROP CONSTRAINT one"),
        finding("B8", "error", "constraint", f"{alter} DROP CONSTRAINT two"),
    )
    steps = report.to_do
    assert [step.rules for step in steps] == [
        {"B8": 2},
        {"C7": 2},
        {"N2": 1},
        {"D5": 1},
        {"A6": 1},
        {"A6": 1},
        {"C10": 1, "C11": 1, "C1": 1, "E4": 1, "B1": 1},
    ]
    assert steps[1].remedy.sql == (
        widen,
        f"{alter} ALTER COLUMN x TYPE INT",
        f"{alter} ALTER COLUMN y TYPE INT",
    )
    assert "24 hours" in steps[5].note and not steps[4].note
    assert steps[-1].remedy == Remedy(
        (
            "CALL iceberg_writer_compat.system.enable(table => 'db.t', rewrite => true, "
            "drop => array('identity-columns', 'generated-columns'))",
        ),
        (f'{ENABLE}"db.t", rewrite=True, drop=["identity-columns", "generated-columns"])',),
        (
            "iceberg-writer-compat enable 'db.t' --rewrite "
            "--drop identity-columns --drop generated-columns",
        ),
        "enable",
    )
    text = str(report)
    for step in steps:
        for statement in step.remedy.python:
            assert text.count(f"        {statement}\n") == 1
    assert text.index("what to do") < text.index("  protocol") < text.index("  C10 error")
    commands = _text.report(report, "command")
    assert f"        {steps[-1].remedy.command[0]}\n" in commands and ENABLE not in commands


def test_a_copy_takes_the_place_of_other_steps() -> None:
    copy = "CREATE TABLE t_iceberg USING delta PARTITIONED BY (p, d) AS SELECT * FROM t"
    smaller = "CREATE TABLE t_iceberg USING delta PARTITIONED BY (p) AS SELECT * FROM t"
    found = (
        finding("C7", "error", "copy", copy),
        finding("F9", "error", "copy", smaller),
        finding("B8", "error", "constraint", "ALTER TABLE t DROP CONSTRAINT c"),
        finding("W1", "error", "rows", "UPDATE t SET p = NULL WHERE p = 'x'"),
        samples.finding("B1", "info", remedy=to_enable()),
    )
    steps = off(*found).to_do
    assert [step.remedy.sql for step in steps] == [
        ("UPDATE t SET p = NULL WHERE p = 'x'",),
        (smaller,),
    ]
    assert steps[-1].rules == {"C7": 1, "F9": 1, "B8": 1, "B1": 1}


def test_a_guarded_table_is_repaired_before_it_is_changed() -> None:
    steps = Report.from_dict(
        samples.report(
            finding("N2", "warning", "properties", "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')"),
            finding("C7", "error", "type", "ALTER TABLE t ALTER COLUMN x TYPE INT"),
        )
    ).to_do
    assert [list(step.rules) for step in steps] == [["C7"], ["N2"]]


def test_what_was_fixed_is_not_to_be_done() -> None:
    assert [step.rules for step in Report.from_dict(samples.past()).to_do] == [{"D1": 1}]
    assert Report.from_dict(samples.report()).to_do == ()
    assert "what to do" not in str(Report.from_dict(samples.report()))


def test_columns_that_differ_in_case_keep_their_settings() -> None:
    def rename(column: str) -> list[str]:
        return [
            "SET spark.sql.caseSensitive=true",
            f"ALTER TABLE t RENAME COLUMN {column} TO {column}2",
            "RESET spark.sql.caseSensitive",
        ]

    (step,) = off(
        finding("N2", "error", "rename", *rename("_file")),
        finding("N2", "error", "rename", *rename("_FILE")),
    ).to_do
    assert step.remedy.sql == (*rename("_file"), *rename("_FILE"))


def test_a_plan_says_that_the_call_is_made_again() -> None:
    plan = samples.planned() | {"findings": []}
    plan["plan"] |= {"mode": "metadata"}
    (step,) = Report.from_dict(plan).to_do
    assert "without its dry run" in str(step) and step.remedy.sql == ()


def test_many_statements_are_not_all_listed() -> None:
    found = [
        finding("C7", "error", "type", f"ALTER TABLE t ALTER COLUMN c{n} TYPE INT")
        for n in range(50)
    ]
    report = off(*found)
    assert len(report.to_do[0].remedy.sql) == 50
    lines = str(report).splitlines()
    assert sum("ALTER COLUMN" in line for line in lines) == 20
    assert "        and 30 more statements: see report.to_do" in lines


def test_the_gravest_findings_come_first() -> None:
    kinds = ["info", "error", "warning", "error"]
    findings = [samples.finding(f"R{n}", kind) for n, kind in enumerate(kinds)]
    text = str(Report.from_dict(samples.report(*findings)))
    heads = [line.split()[:2] for line in text.splitlines() if line.startswith("  R")]
    assert heads == [["R1", "error"], ["R3", "error"], ["R2", "warning"], ["R0", "info"]]


def test_a_thousand_findings_are_not_all_listed() -> None:
    findings = [samples.finding(found=f"finding {n}.") for n in range(1000)]
    text = str(Report.from_dict(samples.report(*findings)))
    assert text.startswith("spark_catalog.db.t: not compliant: 1,000 violations\n")
    assert len(text.splitlines()) < 100
    assert "    and 980 more findings" in text.splitlines()


def test_a_fix_can_be_pasted() -> None:
    fix = "ALTER TABLE t ADD COLUMNS (" + ", ".join(f"c{n} INT" for n in range(50)) + ")"
    text = str(
        Report.from_dict(
            samples.report(samples.finding(remedy=samples.remedy(fix), why="long " * 50))
        )
    )
    assert fix in text
    assert max(len(line) for line in text.splitlines() if fix not in line) <= 100


def test_text_holds_no_terminal_commands() -> None:
    report = Report.from_dict(
        samples.report(
            samples.finding(found="red \x1b[31m", remedy=samples.remedy("SELECT '\x07'")),
            table="a\x1b]b",
        )
    )
    for text in (str(report), str(replace(GONE, table="\x1b[2J", message="\x1b[2J"))):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\\x1b" in text


@pytest.mark.parametrize(
    ("sample", "verdict"),
    [
        (samples.report(), "compliant"),
        (samples.report(samples.finding(severity="warning")), "compliant: 1 warning"),
        (samples.report(samples.finding(severity="info")), "compliant"),
        (samples.report(enabled=False, compliant=False), "not enabled"),
        (samples.report(samples.finding()), "not compliant: 1 violation"),
        (samples.report(kind="would_break"), "this would break no rule"),
        (
            samples.report(samples.finding(), kind="would_break"),
            "this would break the rules: 1 violation",
        ),
        (samples.past(), "2 violations in versions 0 to 12, 1 fixed since"),
        (
            samples.past() | {"findings": []},
            "no rule was broken in versions 0 to 12",
        ),
    ],
)
def test_verdict(sample: samples.Json, verdict: str) -> None:
    assert Report.from_dict(sample).verdict == verdict


@pytest.mark.parametrize(
    ("verdict", "exact", "text"),
    [
        ("enabled", True, "is on"),
        ("metadata-only", True, "is off; enabling needs only a metadata commit: because."),
        (
            "rewrite",
            False,
            "is off; enabling needs 1 file, 2.0 KiB to be rewritten, by estimate: because.",
        ),
        ("rewrite", True, "is off; enabling needs 1 file, 2.0 KiB to be rewritten: because."),
        ("blocked", True, "is off, and cannot be enabled before blockers are removed: because."),
    ],
)
def test_what_enabling_takes(verdict: str, exact: bool, text: str) -> None:
    enabling = {
        "verdict": verdict,
        "reason": "because.",
        "files_to_rewrite": 1,
        "bytes_to_rewrite": 2048,
        "exact": exact,
        "types_only": False,
    }
    sample = samples.report(facts=samples.facts(enabling=enabling))
    assert f"  the feature       {text}" in str(Report.from_dict(sample)).splitlines()


def test_a_table_where_types_alone_change_is_one_commit_away() -> None:
    why = "One commit switches it on: a SMALLINT becomes INT."
    enabling = samples.facts()["enabling"]
    enabling |= {"verdict": "rewrite", "reason": why, "types_only": True}
    found = samples.finding("C7", "warning", remedy=to_enable(rewrite=True))
    report = off(found, facts=samples.facts(enabling=enabling))
    told = "is off; enabling needs only a metadata commit, in which types change: "
    assert told in " ".join(str(report).split())
    (step,) = report.to_do
    assert "no data file is written" in step.what
    several = Reports((report, Report.from_dict(samples.report())))
    assert "1 complies, 1 one commit away" in several._repr_html_()


def test_text_of_a_history_and_an_audit() -> None:
    lines = str(Report.from_dict(samples.past())).splitlines()
    wanted = "    since     version 3 of 2026-11-01 08:30:00 UTC by WRITE, fixed in version 7"
    assert wanted in lines
    assert any(line.endswith("by STREAMING UPDATE, not fixed") for line in lines)
    audit = {"files_live": 4000, "files_read": 10, "bytes": 2048, "sampled": True}
    verified = Report.from_dict(samples.report(kind="verify", audit=audit))
    assert (
        "  footers read      a sample of 10 files of 4,000, 2.0 KiB" in str(verified).splitlines()
    )


def test_text_of_a_plan() -> None:
    plan = Report.from_dict(samples.planned())
    lines = str(plan).splitlines()
    assert lines[0].endswith(": 3 data files, 2.0 KiB, would be rewritten")
    assert "  drop              ALTER TABLE db.t DROP CONSTRAINT c" in lines
    assert "  rewrite           rows are written: 3 files, 2.0 KiB" in lines
    wanted = "  files: rewrite    3 files, 2.0 KiB. Column `t` is stored as int96. (E4, E5)"
    assert wanted in lines
    assert Report.from_json(plan.to_json()) == plan
    assert "Column <code>t</code> is stored as int96." in plan.to_html()


def test_report_of_an_older_version_is_read() -> None:
    older = samples.report()
    del older["plan"]
    assert Report.from_dict(older).plan is None


def test_text_of_several_tables() -> None:
    text = str(several())
    assert text.endswith("\n\n3 tables: 1 compliant, 1 not compliant, 1 could not be read")
    assert "db.gone: could not be read\n  The table db.gone cannot be found." in text
    assert str(Reports(())) == "no tables"


def test_text_of_a_rule() -> None:
    sample = {
        "rule": "C7",
        "statement": "Every type is one of these.",
        "why": "Others have no place.",
        "clauses": ["RFC, Types"],
        "checked": "table",
    }
    rule = RuleText.from_dict(sample)
    assert rule.to_dict() == sample
    assert str(rule).splitlines() == [
        "  C7       Every type is one of these.",
        "    why    Others have no place.",
        "    about  table",
        "    source RFC, Types",
    ]


def test_notebooks_show_the_findings() -> None:
    findings = [samples.finding(found=f"finding {n} <b>.") for n in range(30)]
    html = Report.from_dict(samples.report(*findings))._repr_html_()
    assert "not compliant: 30 violations" in html
    assert "finding 19 &lt;b&gt;." in html
    assert "finding 20 " not in html
    assert "and 10 more" in html
    assert "<script" not in html
    assert "The table db.gone cannot be found." in several()._repr_html_()
    assert "1 complies, 1 breaks a rule, 1 could not be read" in several()._repr_html_()
    many = Reports((Report.from_dict(samples.ordinary("db.t")),) * 30)._repr_html_()
    assert many.count("<b>db.t</b>") == 20 and "and 10 more tables" in many
    assert many.count("DROP CONSTRAINT recent") == 20


# --- DataFrame ------------------------------------------------------------------------------------


def test_data_frame(spark: SparkSession) -> None:
    frame = several(spark).to_df()
    assert frame.schema == StructType.fromDDL(
        "table_name STRING, table_version BIGINT, rule STRING, severity STRING, "
        "clauses ARRAY<STRING>, place_kind STRING, place STRING, column_id BIGINT, "
        "physical_name STRING, value STRING, files BIGINT, examples ARRAY<STRING>, found STRING, "
        "required STRING, why STRING, fix ARRAY<STRING>"
    )
    rows = frame.collect()
    assert [row.rule for row in rows] == ["C7", "C5", "B4", "A3", "E8", None]
    first, *_, files, gone = rows
    assert (first.table_name, first.table_version) == ("spark_catalog.db.t", 12)
    assert (first.place_kind, first.place, first.column_id) == ("column", "a", 1)
    assert (files.files, files.column_id) == (17, None)
    assert files.examples == ["part-00000.parquet: 5 rows in the footer, 6 in the log"]
    # Whoever counts errors does not take a table for a good one that could not be read.
    assert (gone.table_name, gone.severity, gone.found) == (GONE.table, "error", GONE.message)
    assert Report.from_dict(samples.report(), spark).to_df().count() == 0


def test_data_frame_of_a_history(spark: SparkSession) -> None:
    frame = Report.from_dict(samples.past(), spark).to_df()
    assert frame.columns[-4:] == [
        "first_version",
        "first_timestamp",
        "operation",
        "mended_version",
    ]
    (row,) = (
        frame.where("mended_version IS NOT NULL")
        .selectExpr("first_version", "CAST(first_timestamp AS STRING) AS at", "operation")
        .collect()
    )
    assert tuple(row) == (3, "2026-11-01 08:30:00.25", "WRITE")


def test_a_comparison_can_have_several_differences() -> None:
    faults = [samples.difference(place, fault="is known") for place in ("a", "b", "c")]
    sample = samples.proof(*faults)
    sample["outcomes"][-1]["compared"] = 2
    text = str(Proof.from_dict(sample))
    assert "known fault: 3 (2 compared)" in " ".join(text.split())


def test_a_page_says_when_it_was_made() -> None:
    before = datetime.now(timezone.utc).replace(microsecond=0)
    for page in (several().to_html(), Proof.from_dict(samples.proof()).to_html()):
        (made,) = re.findall(r'<time datetime="([^"]+)">', page)
        assert before <= datetime.fromisoformat(made) <= datetime.now(timezone.utc)


def test_results_have_a_short_repr_and_one_for_notebooks() -> None:
    report = Report.from_dict(samples.broken())
    assert repr(report) == ("<Report spark_catalog.db.t: not compliant: 3 violations, 1 warning>")
    assert repr(several()) == f"<Reports {several().verdict}>"
    proof = Proof.from_dict(samples.proof())
    assert repr(proof) == f"<Proof spark_catalog.db.t: {proof.verdict}>"
    results = EnableResults((TableProgress("db.<t>", "failed", error=GONE),))
    assert repr(results) == "<EnableResults 1 table: 1 failed>"
    assert results._repr_html_().startswith("<pre>db.&lt;t&gt;: failed; the table is unchanged")


TO_ALTER = Remedy(("ALTER TABLE t x",), ('spark.sql("ALTER TABLE t x")',), ("ALTER TABLE t x",))


@pytest.mark.parametrize(
    ("result", "short", "details"),
    [
        (
            PublishResult("db.t", "file:/t/metadata/v2.json", 7, 4, 99, 3, 5, 1, "main.db.t"),
            "db.t: version 7 is published by 3 snapshots: 5 files added, 1 removed",
            ["catalog           main.db.t", "metadata          file:/t/metadata/v2.json"],
        ),
        (
            PublishResult("db.t", "v2.json", 7, 7, None, 0, 0, 0, None, mended=("a", "b")),
            "db.t: version 7 is published, unchanged",
            ["metadata          v2.json", "repaired          a", "                  b"],
        ),
        (
            PublishStatus("db.t", 7, 5, 2, 99, "v2.json", None),
            "db.t: version 5 is published, 2 versions behind",
            ["newest version    7", "snapshot          99"],
        ),
        (
            PublishStatus("db.t", 7, 7, 0, 99, "v2.json", None),
            "db.t: version 7 is published, the newest",
            [],
        ),
        (
            PublishStatus(
                "db.t", 7, None, None, None, None, None, (PublishProblem("It is <b>.", TO_ALTER),)
            ),
            "db.t: not published, 1 problem",
            ["problem           It is <b>.", 'fix               spark.sql("ALTER TABLE t x")'],
        ),
        (
            EnableResult(
                "db.t",
                True,
                version=3,
                mode="rewrite",
                files_rewritten=2,
                bytes_rewritten=2048,
                files_kept=1,
                orphans=("file:/t/rewritten-1",),
                warnings=(EnableWarning("N2: column _file", TO_ALTER),),
                contract="icebergWriterCompatV1",
            ),
            "db.t: icebergWriterCompatV1 is on, 2 data files rewritten",
            [
                "version           3",
                "rewritten         2 files, 2.0 KiB",
                "kept              1 file",
                "left over         file:/t/rewritten-1 belongs to no version; VACUUM removes it",
                "warning           N2: column _file",
                'fix               spark.sql("ALTER TABLE t x")',
            ],
        ),
        (
            EnableResult(None, False),
            "new tables of the session: icebergWriterCompatV1 is on, unchanged",
            [],
        ),
        (DisableResult("db.t", True), "db.t: the feature is off", []),
    ],
)
def test_results_of_calls(
    result: PublishResult | PublishStatus | EnableResult | DisableResult,
    short: str,
    details: list[str],
) -> None:
    assert repr(result) == f"<{type(result).__name__} {short}>"
    first, *lines = str(result).splitlines()
    assert first == short
    assert [line for line in details if f"  {line}" not in lines] == []
    html = result._repr_html_()
    assert f"{short.partition(': ')[0]}</b>: {short.partition(': ')[2]}" in html
    for line in details:
        assert str(escape(line[18:])) in html
    assert replace(result) == result
