"""Iceberg's compatibility kit for REST catalogs, which `make conformance` fetches."""

from __future__ import annotations

import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from conftest import REPOSITORY
from iceberg_writer_compat import CatalogServer, serve

PAGE = REPOSITORY / "docs" / "conformance.md"

_KIT = REPOSITORY / ".tools" / "conformance"

_TESTS = "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests"

# What the kit makes, and expects not to be there.
_NAMESPACES = ("a", "ns", "newdb", "ns1", "ns2", "other_ns")

# Of Spark's jars, what the kit's client needs besides its own.
_OF_SPARK = (
    "avro-1.*",
    "commons-*",
    "hadoop-client-api-*",
    "hadoop-client-runtime-*",
    "jackson-annotations-*",
    "jackson-core-2*",
    "jackson-databind-*",
    "slf4j-api-*",
)

_REFUSED = "[ICEBERG_WRITER_COMPAT_COMMIT_REFUSED."

# What the server answers to what no Delta table can be: the name and the text of the refusal, and
# why. A failure without one of these texts in an answer of the server is a failure.
REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        "`PARTITION_TRANSFORM`",
        f"{_REFUSED}PARTITION_TRANSFORM]",
        "Delta partitions a table by whole values of its columns; its log has no buckets and no "
        "truncated values",
    ),
    (
        "`SORT_ORDER`",
        f"{_REFUSED}SORT_ORDER]",
        "Delta's log has no place for a sort order",
    ),
    (
        "`FORMAT_VERSION`",
        f"{_REFUSED}FORMAT_VERSION]",
        "the feature is about Iceberg's format version 2",
    ),
    (
        "`FILE_RULES`",
        f"{_REFUSED}FILE_RULES]",
        "the kit adds data files that do not exist; added files are opened, because the rules are "
        "about their footers",
    ),
    (
        "`PLACE`",
        f"{_REFUSED}PLACE]",
        "the kit names files and folders outside of the warehouse, such as /path/to/data-a.parquet "
        "and file:/tmp/newdb/newtable; a server that takes them reads any file for its clients",
    ),
    (
        "`PROPERTY`",
        f"{_REFUSED}PROPERTY]",
        "`write.metadata.previous-versions-max` is kept by the publisher, whose next publishing "
        "continues from the metadata files that are there",
    ),
    (
        "location of a new table",
        " is not in the warehouse. Leave it out",
        "as `PLACE`: a new table is in the warehouse or in the folder of its namespace",
    ),
    (
        "name",
        " has other characters than a to z, digits and _",
        "Spark's catalog has no such names",
    ),
    (
        "folder of a Delta table",
        ", which has no name in the catalog. To give it the name back",
        "a drop without purge leaves the Delta table with its log in the folder, and a folder has "
        "one Delta table at most. By register it gets its name back; a drop with purge removes it",
    ),
)

# What the kit expects of a catalog, and is otherwise here: the failure, and what holds instead.
OTHERWISE = {
    "testLoadTableWithMissingMetadataFile": (
        "Expecting code to raise a throwable",
        "loads: a metadata file that is missing is written anew from Delta's log",
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What became of one test of the kit."""

    test: str
    kind: str
    told: str = ""

    def __str__(self) -> str:
        """As in the table."""
        return f"{self.kind} {self.told}".strip()


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[CatalogServer]:
    """A server without tables."""
    with serve(spark, port=0, token="secret") as running:
        yield running
    for name in _NAMESPACES:
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


def _run(server: CatalogServer, folder: Path) -> Path:
    """The report of a run of the kit, which is a process of its own."""
    own = [jar for jar in sorted(_KIT.glob("*.jar")) if "console" not in jar.name]
    spark = Path(pyspark.__file__).parent / "jars"
    theirs = [jar for name in _OF_SPARK for jar in sorted(spark.glob(f"{name}.jar"))]
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    settings = {
        "uri": server.uri,
        "token": "secret",
        "rck.requires-namespace-create": "true",
        "rck.supports-names-with-dot": "true",
    }
    command = [
        str(java),
        *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-D{key}={value}" for key, value in settings.items()),
        *("-jar", str(_KIT / "junit-platform-console-standalone.jar"), "execute"),
        *("--class-path", os.pathsep.join(map(str, [*own, *theirs]))),
        *("--select-class", _TESTS, "--config", "rck.local=false"),
        *("--reports-dir", str(folder), "--details", "none", "--disable-banner"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    report = folder / "TEST-junit-jupiter.xml"
    assert ran.returncode in (0, 1) and report.exists(), ran.stdout[-5000:] + ran.stderr[-5000:]
    return report


def _outcome(case: ElementTree.Element) -> Outcome:
    name = re.sub(r"\(.*?\)", "", case.attrib["name"])
    skipped = case.find("skipped")
    if skipped is not None:
        return Outcome(name, "left out by the kit")
    broken = case.find("failure")
    broken = broken if broken is not None else case.find("error")
    if broken is None:
        return Outcome(name, "passed")
    text = f"{broken.get('message')}\n{broken.text}"
    if name in OTHERWISE and OTHERWISE[name][0] in text:
        return Outcome(name, "otherwise:", OTHERWISE[name][1])
    # An error that the client made of an answer of the server.
    if "org.apache.iceberg.rest.ErrorHandlers" in text:
        found = [(text.find(words), told) for told, words, _ in REFUSALS if words in text]
        if found:
            return Outcome(name, "refused:", min(found)[1])
    return Outcome(name, "**failed**", " ".join(text.split())[:300])


def _page(outcomes: list[Outcome]) -> str:
    counts = Counter(outcome.kind.strip(":") for outcome in outcomes)
    summary = ", ".join(
        f"{counts[kind]} {kind}" for kind in sorted(counts, key=lambda k: -counts[k])
    )
    refused = Counter(outcome.told for outcome in outcomes if outcome.kind == "refused:")
    why = "\n".join(
        f"| {told} | {refused[told]} | {reason} |" for told, _, reason in REFUSALS if refused[told]
    )
    tests = "\n".join(f"| `{outcome.test}` | {outcome} |" for outcome in outcomes)
    return f"""# Conformance

What Iceberg's compatibility kit for REST catalogs, release 1.11.0, finds in the
[REST catalog](rest.md). `make conformance` runs the kit's tests of catalogs by Iceberg's client
in a process of its own, against a server, writes this page, and fails if the page has changed or a
test has failed. A test counts as *refused* only if the error that it ended with was made by the
client of an answer of the server, with the text of the refusal in it.

Of {len(outcomes)} tests, each value of a parameter counted as one: {summary}.

## Why a Delta table cannot

Most tests that are refused begin with a table that has `bucket[16]`, a sort order or a folder in
`file:/tmp`, or add files that do not exist, whatever else they are about. Names in `CAPITALS` are
conditions of `ICEBERG_WRITER_COMPAT_COMMIT_REFUSED`, described in
[write-back.md](write-back.md#what-cannot-be-taken).

| Refused | Tests | Why |
|---|---|---|
{why}

The kit itself leaves out what a catalog need not have: namespaces within namespaces, the empty
namespace, names with slashes, and a test about settings of the kit's own server.

## Tests

| Test | Result |
|---|---|
{tests}
"""


def test_conformance(server: CatalogServer, tmp_path: Path) -> None:
    """Each test has the result that the page says, and none has failed."""
    report = ElementTree.parse(_run(server, tmp_path)).getroot()
    cases = [case for case in report.iter("testcase") if case.get("classname") == _TESTS]
    outcomes = sorted(map(_outcome, cases), key=lambda outcome: outcome.test)
    page = _page(outcomes)
    known = PAGE.read_text() if PAGE.exists() else ""
    if os.environ.get("CONFORMANCE_PAGE") == "write":
        PAGE.write_text(page)
    failed = [f"{outcome.test}: {outcome}" for outcome in outcomes if "failed" in outcome.kind]
    assert not failed
    assert len({re.sub(r"\[.*", "", outcome.test) for outcome in outcomes}) >= 101
    assert page == known, "make conformance has written docs/conformance.md anew"
