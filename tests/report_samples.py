"""Reports as the JVM writes them, for tests that need no JVM."""

from __future__ import annotations

import json
from types import NoneType
from typing import Any, get_args, get_origin

from iceberg_writer_compat import Column, Facts, Feature, Finding, _codec
from iceberg_writer_compat.remedy import RemedyKind

Json = dict[str, Any]


def complete(kind: type, given: Json) -> Json:
    """What is given, and a blank for each other field, so that a new field needs no sample."""
    missing = [entry for entry in _codec.types_of(kind).items() if entry[0] not in given]
    return given | {name: blank(type_of) for name, type_of in missing}


def blank(kind: Any) -> object:
    """A value of this type that says nothing."""
    if NoneType in get_args(kind):
        return None
    return [] if get_origin(kind) is tuple else kind()


def remedy(statement: str, kind: RemedyKind = "change") -> Json:
    """A remedy of one SQL statement."""
    python = "spark.sql(" + json.dumps(statement) + ")"
    return {"kind": kind, "sql": [statement], "python": [python], "command": [statement]}


def finding(rule: str = "C7", severity: str = "error", **changes: Any) -> Json:
    """What a rule says about the column `a`."""
    said = {
        "rule": rule,
        "clauses": ["protocol_rfcs/iceberg-writer-compat-v1.md, Writer Requirements"],
        "severity": severity,
        "place": place("column", "a", id=1, physical_name="col-1"),
        "files": None,
        "examples": [],
        "found": "column `a` has the type SMALLINT, which Iceberg does not have.",
        "required": "Every type is one of integer, long and so on.",
        "why": "An Iceberg reader could not read the column.",
        "remedy": remedy("ALTER TABLE db.t ALTER COLUMN a TYPE INT", "type"),
        "first_version": None,
        "first_timestamp": None,
        "operation": None,
        "mended_version": None,
    }
    return complete(Finding, said | changes)


def place(kind: str, name: str = "", **changes: Any) -> Json:
    """A place."""
    return {"kind": kind, "name": name, "id": None, "physical_name": None, "value": None} | changes


def column(name: str, *path: str, **changes: Any) -> Json:
    """A node of the schema."""
    node = {
        "name": name,
        "path": list(path or (name,)),
        "role": "field",
        "type": "INT",
        "nullable": True,
        "id": 1,
        "physical_name": "col-1",
        "partition": False,
    }
    return complete(Column, node | changes)


def feature(name: str, **changes: Any) -> Json:
    """A table feature that has no property and is not in use."""
    facts = {"supported": True, "active": False, "enabled": None, "allowed": True}
    return complete(Feature, {"name": name, **facts, **changes})


def facts(**changes: Any) -> Json:
    """The facts about a table with the feature."""
    known = {
        "reader_version": 2,
        "writer_version": 7,
        "features": [
            feature("columnMapping", active=True, enabled=True),
            feature("invariants"),
            feature("deletionVectors", enabled=False, allowed=False),
            feature("rowTracking", supported=False, enabled=False, allowed=False),
        ],
        "column_mapping_mode": "id",
        "max_column_id": 4,
        "partition_columns": ["p"],
        "clustering_columns": [],
        "files": 1200,
        "bytes": 123_456_789,
        "rows": 1_000_000,
        "deletion_vectors": 0,
        "enabling": {
            "verdict": "enabled",
            "reason": "",
            "files_to_rewrite": 0,
            "bytes_to_rewrite": 0,
            "exact": True,
            "types_only": False,
        },
    }
    return complete(Facts, known | changes)


def report(*findings: Json, **changes: Any) -> Json:
    """A report with these findings."""
    violations = [found for found in findings if found["severity"] == "error"]
    return {
        "format": 2,
        "kind": "check",
        "table": "spark_catalog.db.t",
        "location": "file:/warehouse/t",
        "version": 12,
        "timestamp": "2026-11-18T12:00:00Z",
        "profile": "rfc",
        "enabled": True,
        "contract": "icebergWriterCompatV1",
        "compliant": not violations,
        "statement": None,
        "facts": facts(),
        "columns": [
            column("a"),
            column("s", type="STRUCT<l: ARRAY<INT>>", id=2, physical_name="col-2"),
            column("s.l", "s", "l", type="ARRAY<INT>", id=3, physical_name="col-3"),
            column("s.l.element", "s", "l", "element", role="element", id=4, physical_name=None),
            column("p", type="STRING", nullable=False, id=5, physical_name="col-5", partition=True),
        ],
        "findings": list(findings),
        "audit": None,
        "history": None,
        "plan": None,
    } | changes


def broken() -> Json:
    """A report with findings of every severity, at places of many kinds."""
    return report(
        finding(),
        finding(
            "C5",
            place=place("column", "s.l.element", id=4),
            found="column `s.l.element` has no id under `delta.columnMapping.nested.ids`.",
            required="Every list has an id for its element.",
        ),
        finding(
            "B4",
            "warning",
            place=place("property", "delta.columnMapping.maxColumnId", value="3"),
            found="the property delta.columnMapping.maxColumnId is 3, below the id 5.",
            required="`delta.columnMapping.maxColumnId` is not below any column id.",
            remedy=remedy(
                "ALTER TABLE db.t SET TBLPROPERTIES ('delta.columnMapping.maxColumnId' = '5')",
                "properties",
            ),
        ),
        finding(
            "A3",
            "info",
            place=place("feature", "icebergWriterCompatV1"),
            found="the protocol does not list icebergWriterCompatV1.",
            required="`writerFeatures` lists `icebergWriterCompatV1`.",
            remedy=remedy("CALL something"),
        ),
        finding(
            "E8",
            place=place("files"),
            files=17,
            examples=["part-00000.parquet: 5 rows in the footer, 6 in the log"],
            found="17 data files have another number of rows than the log says.",
            required="The row count of a file is its `numRecords`.",
            remedy=remedy("INSERT OVERWRITE db.t SELECT * FROM db.t", "rows"),
        ),
    )


def ordinary(table: str, verdict: str = "blocked") -> Json:
    """A report on a table without the feature, with about as much as one of ten columns has."""
    enable = {
        "kind": "enable",
        "sql": [f"CALL iceberg_writer_compat.system.enable(table => '{table}', rewrite => true)"],
        "python": [f'enable_iceberg_writer_compat(spark, "{table}", rewrite=True)'],
        "command": [f"iceberg-writer-compat enable '{table}' --rewrite"],
    }
    found = [
        finding(
            rule,
            "warning" if rule[0] in "BE" else "info",
            place=place("property", f"delta.propertyOf{rule}"),
            found=f"The property delta.propertyOf{rule} is not set, but it must be true, because "
            "the feature includes all requirements of IcebergCompatV2.",
            remedy=enable,
        )
        for rule in ("B1", "B2", "B3", "B4", "A1", "A2", "A3", "E1")
    ]
    found += [
        finding(
            "C1",
            "warning",
            place=place("column", name, id=None),
            found=f"Column {name} has no delta.columnMapping.id and "
            "delta.columnMapping.physicalName, which Iceberg needs to find it in a data file.",
            remedy=enable,
        )
        for name in (f"column_{n}" for n in range(10))
    ]
    if verdict == "blocked":
        found += [
            finding(
                "B8",
                place=place("property", f"delta.constraints.{name}"),
                found="The table feature checkConstraints is not compatible, because the "
                f"constraint {name} uses it, and Iceberg writers do not check constraints.",
                remedy=remedy(f"ALTER TABLE {table} DROP CONSTRAINT {name}", "constraint"),
            )
            for name in ("positive", "recent")
        ]
    files = 3 if verdict == "rewrite" else 0
    enabling = facts()["enabling"] | {"verdict": verdict, "files_to_rewrite": files}
    enabling |= {"reason": "See the findings."}
    return report(
        *found,
        table=table,
        enabled=False,
        compliant=False,
        contract=None,
        columns=[column(f"column_{n}") for n in range(10)],
        facts=facts(enabling=enabling),
    )


def past() -> Json:
    """A history with one rule that was fixed and one that was not."""
    return report(
        finding(
            first_version=3,
            first_timestamp="2026-11-01T08:30:00.250Z",
            operation="WRITE",
            mended_version=7,
        ),
        finding(
            "D1",
            place=place("files"),
            files=2,
            first_version=9,
            first_timestamp="2026-11-02T08:30:00Z",
            operation="STREAMING UPDATE",
        ),
        kind="history",
        history={"from_version": 0, "to_version": 12},
    )


def planned() -> Json:
    """A plan that keeps some files and rewrites others."""
    group = {"reason": "These files are kept.", "rules": [], "examples": []}
    step = {"files": None, "bytes": None}
    return report(
        finding("E4", "warning", place=place("files"), files=3, examples=["a.parquet"]),
        kind="plan",
        enabled=False,
        compliant=False,
        plan={
            "mode": "rewrite",
            "steps": [
                {"name": "drop", "what": "ALTER TABLE db.t DROP CONSTRAINT c", **step},
                {"name": "rewrite", "what": "rows are written", "files": 3, "bytes": 2048},
                {"name": "commit", "what": "one commit", **step},
            ],
            "groups": [
                {"verdict": "keep", "files": 1197, "bytes": 4096, **group},
                {
                    "verdict": "rewrite",
                    "reason": "Column `t` is stored as int96.",
                    "rules": ["E4", "E5"],
                    "files": 3,
                    "bytes": 2048,
                    "examples": ["a.parquet"],
                },
            ],
            "files_to_rewrite": 3,
            "bytes_to_rewrite": 2048,
            "types_only": False,
            "remedies": [remedy("ALTER TABLE db.t DROP CONSTRAINT c", "constraint")],
        },
    )


def proof(*differences: Json, **changes: Any) -> Json:
    """A proof by two readers of which the second has these differences, and a third is missing."""
    checks = ("schema", "rows", "values", "versions")
    outcomes = [outcome("pyiceberg", check) for check in (*checks, "filters")]
    outcomes += [outcome("duckdb", check) for check in (*checks, "aggregates")]
    status = "agrees"
    if differences:
        known = all(one["fault"] is not None for one in differences)
        status = "known fault" if known else "differs"
    outcomes.append(outcome("duckdb", "filters", status=status, differences=list(differences)))
    return {
        "format": 2,
        "proven": status != "differs",
        "kind": "prove",
        "table": "spark_catalog.db.t",
        "metadata_location": "file:/data/t/metadata/v3.metadata.json",
        "delta_version": 8,
        "published_version": 7,
        "versions": [7, 5],
        "gone": [2],
        "columns": ["a", "s.x"],
        "readings": [
            {"reader": reader, "rows": 3, "checksums": ["00000000000000aa", last]}
            for reader, last in (("delta", "01"), ("pyiceberg", "01"), ("duckdb", "02"))
        ],
        "readers": [
            {"name": "pyiceberg", "library": "0.12.0", "missing": None},
            {"name": "duckdb", "library": "1.5.5", "missing": None},
            {"name": "iceberg-spark", "library": None, "missing": "a package of the session"},
        ],
        "outcomes": outcomes,
    } | changes


def outcome(reader: str, check: str, **changes: Any) -> Json:
    """The outcome of a check for a reader."""
    return {
        "reader": reader,
        "check": check,
        "status": "agrees",
        "compared": 1234,
        "left_out": 0,
        "reason": None,
        "differences": [],
    } | changes


def difference(place: str = "a", **changes: Any) -> Json:
    """What a reader sees otherwise than Delta."""
    return {
        "place": place,
        "version": 7,
        "filter": f"`{place}` = CAST('1' AS INT)",
        "delta": "1 row",
        "reader": "0 rows",
        "fault": None,
        "advice": "Remove /data/t/metadata and run: iceberg-writer-compat publish db.t",
    } | changes
