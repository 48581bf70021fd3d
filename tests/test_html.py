"""The HTML page in a real browser."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Error, Page

import browser as browsers
import report_samples as samples
from iceberg_writer_compat import (
    EnableResult,
    EnableResults,
    Proof,
    Report,
    Reports,
    TableError,
    TableProgress,
)

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.headless() as running:
        yield running


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens HTML from a file; fails if the page asks for anything else, or complains."""
    asked: list[str] = []
    complaints: list[str] = []
    pages: list[Page] = []
    file = tmp_path / "report.html"

    def open_page(html: str, scheme: Any = "light") -> Page:
        file.write_text(html, encoding="utf-8")
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(file.as_uri())
        pages.append(page)
        return page

    yield open_page
    assert set(asked) == {file.as_uri()}
    assert complaints == []
    for page in pages:
        page.close()


def broken() -> str:
    return Report.from_dict(samples.broken()).to_html()


def texts(page: Page, selector: str) -> list[str]:
    """The texts of what can be seen."""
    return [found.inner_text().strip() for found in page.locator(selector).all()]


def rules(page: Page) -> list[str]:
    """The rules of the findings that can be seen, in their order."""
    return texts(page, ".findings .group:visible .rule")


def fits(page: Page, width: int) -> None:
    """Fails if the page is wider than a window of this width."""
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width


def height(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


def colours(page: Page, selector: str) -> set[str]:
    """The background colours of what a selector finds."""
    found = page.locator(selector)
    return set(found.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)"))


def picture(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(_screenshot(page))).convert("RGB")


def _screenshot(page: Page, tries: int = 5) -> bytes:
    """A screenshot; Chromium does not always get to take one on a busy machine."""
    try:
        return page.screenshot(full_page=True)
    except Error as error:
        if tries == 1 or "Unable to capture screenshot" not in error.message:
            raise
        return _screenshot(page, tries - 1)


def test_page_is_painted(show: Open) -> None:
    page = show(broken())
    seen = picture(page)
    pixels = seen.width * seen.height
    colours = seen.getcolors(pixels)
    assert colours is not None
    background = max(count for count, _ in colours)
    # Text, bars and marks: neither a blank page nor one that is all of a colour.
    assert len(colours) > 50
    assert 1 - background / pixels > 0.01
    assert page.locator("h1").inner_text() == "spark_catalog.db.t"
    assert page.locator("header .badge").inner_text() == "not compliant: 3 violations, 1 warning"
    assert page.title() == "spark_catalog.db.t · Iceberg Writer Compat"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_dark_and_light(show: Open) -> None:
    def corner(scheme: str) -> int:
        pixel = picture(show(broken(), scheme)).getpixel((1, 1))
        assert isinstance(pixel, tuple)
        return sum(pixel)

    assert corner("light") > 3 * 230
    assert corner("dark") < 3 * 40


def test_bars_are_as_long_as_what_they_count(show: Open) -> None:
    findings = [samples.finding("C7") for _ in range(4)] + [
        samples.finding("B4", "warning"),
        samples.finding("B4", "warning"),
        samples.finding("A3", "info"),
    ]
    page = show(Report.from_dict(samples.report(*findings)).to_html())
    assert texts(page, ".bars b") == ["C7", "B4", "A3"]
    boxes = [bar.bounding_box() for bar in page.locator(".bars i").all()]
    longest, half, quarter = (box["width"] for box in boxes if box)
    assert half == pytest.approx(longest / 2, abs=1)
    assert quarter == pytest.approx(longest / 4, abs=1)
    colours = [bar.evaluate("bar => getComputedStyle(bar).backgroundColor")
               for bar in page.locator(".bars i").all()]  # fmt: skip
    assert len(set(colours)) == 3


def test_what_to_do_comes_first(show: Open) -> None:
    page = show(broken())
    assert texts(page, "main h3") == ["WHAT TO DO", "FINDINGS", "FACTS", "BY RULE", "COLUMNS"]
    assert texts(page, ".todo li > p:first-child") == [
        "Change the types of columns fixes C7, C5: 2 places",
        "Change the rows fixes E8: 1 place",
        "Set properties of the table fixes B4: 1 place",
        "Change the table fixes A3: 1 place",
    ]
    assert texts(page, ".fix")[0] == 'spark.sql("ALTER TABLE db.t ALTER COLUMN a TYPE INT")'
    assert page.content().count("ALTER COLUMN a TYPE INT") == 1
    assert "step 1" in page.locator(".group", has_text="C7").locator("summary").inner_text()
    fits(page, 400)


def test_a_click_sorts(show: Open) -> None:
    places = [samples.place("column", name, id=1) for name in ("c2", "c10", "c1")]
    findings = [samples.finding(place=place, files=n) for n, place in enumerate(places)]
    page = show(Report.from_dict(samples.report(*findings)).to_html())
    cells = ".group tbody tr:visible .place > code"
    head = page.locator(".group th", has_text="Place")
    head.get_by_role("button").click()
    assert texts(page, cells) == ["c1", "c2", "c10"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert texts(page, cells) == ["c10", "c2", "c1"]
    page.locator(".group th", has_text="Files").get_by_role("button").click()
    assert texts(page, cells) == ["c2", "c10", "c1"]
    assert head.get_attribute("aria-sort") is None


def test_thousands_of_columns_make_no_long_page(show: Open) -> None:
    names = [f"c{n}" for n in range(2000)]
    findings = [
        samples.finding(
            place=samples.place("column", name, id=1),
            remedy=samples.remedy(f"ALTER TABLE t ALTER COLUMN {name} TYPE INT", "type"),
        )
        for name in reversed(names)
    ]
    columns = [samples.column(name) for name in names]
    page = show(Report.from_dict(samples.report(*findings, columns=columns)).to_html())
    assert height(page) < 6000
    assert page.locator(".fix:visible").count() == 20
    assert page.locator(".fix").count() == 2000
    places = ".group tbody tr:visible .place > code"
    assert len(texts(page, places)) == 20
    page.locator(".group th", has_text="Place").get_by_role("button").first.click()
    assert texts(page, places) == names[:20]
    more = page.get_by_text("1,980 more places")
    more.click()
    assert page.locator(places).count() == 2000
    more.click()
    page.get_by_label("Search the findings").fill("c1999")
    assert texts(page, places) == ["c1999"]
    page.get_by_label("Search the findings").fill("")
    assert texts(page, places) == names[:20]


def test_filters(show: Open) -> None:
    page = show(broken())
    shown = page.locator(".findings output")
    assert shown.inner_text() == "5 of 5 shown"
    page.get_by_label("error").uncheck()
    assert rules(page) == ["B4", "A3"]
    assert shown.inner_text() == "2 of 5 shown"
    page.get_by_label("info").uncheck()
    assert rules(page) == ["B4"]
    page.get_by_label("error").check()
    page.get_by_label("Search the findings").fill("NESTED.ids")
    assert rules(page) == ["C5"]
    page.get_by_label("Search the findings").fill("")
    # A group that is closed opens while something in it is searched for.
    closed = page.locator(".group", has_text="B4").locator("tbody tr")
    assert closed.is_hidden()
    page.get_by_label("Search the findings").fill("below the id 5")
    assert closed.is_visible()


def test_tree_of_columns(show: Open) -> None:
    page = show(broken())
    names = ".columns tbody tr:visible .name > span:first-child"
    assert texts(page, names) == ["a", "s", "l", "element", "p"]
    boxes = [found.bounding_box() for found in page.locator(names).all()]
    a, s, inner, element, p = (box["x"] for box in boxes if box)
    assert a == s == p < inner < element
    row = page.locator(".columns tbody tr").nth(3)
    assert texts(page, ".columns tbody tr[data-severity=error] .chips") == ["C7", "C5"]
    assert row.locator("td").nth(2).inner_text() == "4"
    page.get_by_label("only those with findings").check()
    # What leads to a problem stays.
    assert texts(page, names) == ["a", "s", "l", "element"]


def test_a_compliant_table(show: Open) -> None:
    page = show(Report.from_dict(samples.report()).to_html())
    assert page.locator("header .badge").inner_text() == "compliant"
    assert page.locator(".findings").count() == 0
    assert page.get_by_label("only those with findings").is_hidden()


def test_several_tables(show: Open) -> None:
    entries = (
        Report.from_dict(samples.broken()),
        Report.from_dict(samples.report(table="db.good", facts=samples.facts(bytes=5))),
        TableError("db.gone", "TABLE_OR_VIEW_NOT_FOUND", "The table db.gone cannot be found."),
        Report.from_dict(samples.past() | {"table": "db.past"}),
    )
    page = show(Reports(entries).to_html())
    title = "4 tables: 1 compliant, 2 not compliant, 1 could not be read"
    assert page.locator("h1").inner_text() == title
    assert texts(page, ".tables > .tools .chip") == [
        "complies 1",
        "breaks a rule 2",
        "could not be read 1",
    ]
    counts = texts(page, "main > .card > .bars .number")
    assert dict(zip(texts(page, "main > .card > .bars b"), counts, strict=True))["C7"] == "2"
    tables = ".table > summary > b"
    assert texts(page, tables) == ["spark_catalog.db.t", "db.good", "db.gone", "db.past"]
    page.get_by_role("button", name="Size").click()
    assert texts(page, tables) == ["db.gone", "db.good", "spark_catalog.db.t", "db.past"]
    assert page.locator("#table-3 pre").is_hidden()
    page.locator("#table-3 > summary").click()
    assert "cannot be found" in page.locator("#table-3").inner_text()
    page.evaluate("location.hash = '#table-4'")
    page.locator("#table-4 .findings").wait_for()
    since = page.locator("#table-4 .findings").inner_text()
    assert "version 3 of 2026-11-01 08:30:00 UTC by WRITE, fixed in version 7" in since
    page.get_by_label("complies").uncheck()
    assert page.locator("#table-2").is_hidden()
    fits(page, 400)


def test_hundreds_of_tables(show: Open) -> None:
    verdicts = ("blocked", "rewrite", "metadata-only")
    entries = [
        Report.from_dict(samples.ordinary(f"sales.orders_{n:03}", verdicts[n % 3]))
        for n in range(299)
    ]
    good = Report.from_dict(samples.report(table="sales.good"))
    html = Reports((*entries, good)).to_html()
    assert len(html.encode()) <= 1_000_000
    page = show(html)
    assert texts(page, ".tables > .tools .chip") == [
        "complies 1",
        "one commit away 99",
        "needs a rewrite 100",
        "blocked 100",
    ]
    assert height(page) < 4000
    shown = page.locator(".table:visible")
    assert shown.count() == 20
    more = page.get_by_text("280 more tables")
    more.click()
    assert shown.count() == 300
    more.click()
    page.get_by_label("Search the tables").fill("orders_297")
    assert texts(page, ".table:visible > summary > b") == ["sales.orders_297"]
    shown.locator("> summary").click()
    told = shown.inner_text()
    for wanted in (
        'spark.sql("ALTER TABLE sales.orders_297 DROP CONSTRAINT recent")',
        'enable_iceberg_writer_compat(spark, "sales.orders_297", rewrite=True)',
        "because the constraint recent uses it",
        "column_0; column_1; column_2",
    ):
        assert wanted in told
    page.get_by_label("Search the tables").fill("")
    for name in ("blocked", "needs a rewrite", "one commit away"):
        page.get_by_label(name).uncheck()
    assert texts(page, ".table:visible > summary > b") == ["sales.good"]
    assert page.locator(".rules").get_by_text("C1", exact=True).count() == 1
    fits(page, 400)


def test_results_of_many_tables(show: Open) -> None:
    error = TableError("t", "C", "The table " + "a_very_long_name_" * 20 + " cannot be changed.")
    result = EnableResult("t", True, contract="icebergWriterCompatV1")
    results = EnableResults(
        (
            *(TableProgress(f"db.t{n}", "failed", error=error) for n in range(40)),
            TableProgress("db.done", "done", result=result),
        )
    )
    page = show(results.to_html())
    assert texts(page, ".tables > .tools .chip") == ["failed 40", "done 1"]
    assert page.locator(".table:visible").count() == 20
    page.get_by_label("failed").uncheck()
    assert texts(page, ".table:visible > summary > b") == ["db.done"]
    page.get_by_label("failed").check()
    page.locator(".table > summary").first.click()
    fits(page, 400)


def test_a_plan_sets_statements_and_files_as_code(show: Open) -> None:
    page = show(Report.from_dict(samples.planned()).to_html())
    code = texts(page, ".plan code")
    assert code == ["ALTER TABLE db.t DROP CONSTRAINT c", "t", "a.parquet"]
    fits(page, 400)


def test_what_is_not_used_is_not_red(show: Open) -> None:
    page = show(broken())
    chips = {
        chip.inner_text().split()[0]: chip.evaluate("chip => getComputedStyle(chip).color")
        for chip in page.locator("dd.chips .chip").all()
    }
    assert chips["invariants"] == chips["columnMapping"] != chips["deletionVectors"]


def test_a_known_fault_has_one_colour(show: Open) -> None:
    known = [samples.difference("s.x", fault="is known"), samples.difference("a", fault="is known")]
    sample = samples.proof(*known)
    values = samples.outcome("duckdb", "values", status="known fault", differences=known[:1])
    sample["outcomes"] = [
        values if (one["reader"], one["check"]) == ("duckdb", "values") else one
        for one in sample["outcomes"]
    ]
    page = show(Proof.from_dict(sample).to_html())
    marked = ".chip:has-text('known fault'), .checksums .warning"
    assert page.locator(".checksums .warning").count() == 1
    assert page.locator(marked).count() > 3
    assert len(colours(page, marked)) == 1
    assert page.locator("main .error, main .bad").count() == 0
    fits(page, 400)


def test_a_proof(show: Open) -> None:
    differences = (
        samples.difference("b"),
        samples.difference("a", fault="treats infinity as out of range", reader="7 rows"),
    )
    page = show(Proof.from_dict(samples.proof(*differences)).to_html())
    assert page.title() == "spark_catalog.db.t · Iceberg Writer Compat"
    assert texts(page, "header .badge") == ["not proven: 2 readers, 1 difference"]
    assert texts(page, ".source") == [
        "file:/data/t/metadata/v3.metadata.json, version 7, 1 version behind"
    ]
    cells = texts(page, ".matrix tbody tr:nth-child(5) :is(th, td)")
    assert cells == ["filters", "agrees (1,234)", "differs: 2 (1,234 compared)"]
    assert texts(page, ".matrix tbody tr:last-child td")[0] == "not offered"
    assert "iceberg-spark is not installed" in page.locator(".matrix").inner_text()
    assert texts(page, ".checksums .error") == ["02"]
    places = ".findings tbody tr:visible .place > code"
    assert texts(page, places) == ["b", "a"]
    page.get_by_label("known fault").uncheck()
    assert texts(page, places) == ["b"]
    page.locator("summary").first.click()
    assert "iceberg-writer-compat publish db.t" in page.locator("details").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_proof_without_differences(show: Open) -> None:
    page = show(Proof.from_dict(samples.proof()).to_html(), "dark")
    assert texts(page, "header .badge") == ["proven: 2 readers"]
    assert page.locator(".findings").count() == 0


EVIL = (
    "<script>window.ran = true</script>"
    """<img src="http://x.test/" onerror="window.ran = true">"'`"""
)


def evil(value: Any, key: str = "") -> Any:
    """A report whose every free text is a piece of HTML."""
    if isinstance(value, dict):
        return {k: evil(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [evil(entry, key) for entry in value]
    fixed = {"kind", "severity", "role", "verdict", "timestamp", "first_timestamp"}
    fixed |= {"check", "status"}
    return EVIL if isinstance(value, str) and key not in fixed else value


def test_text_stays_text(show: Open) -> None:
    report = Report.from_dict(evil(samples.broken() | {"statement": "x"}))
    history = Report.from_dict(evil(samples.past()))
    page = show(Reports((report, history, TableError(EVIL, EVIL, EVIL))).to_html())
    assert page.evaluate("window.ran") is None
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert EVIL in texts(page, ".columns .name")
    assert EVIL in texts(page, ".todo .fix")
    assert EVIL in texts(page, "pre.error")
    proof = Proof.from_dict(evil(samples.proof(samples.difference())))
    whole = show(proof.to_html())
    assert whole.evaluate("window.ran") is None
    assert whole.locator("script").count() == 1
    assert whole.locator("img").count() == 0
    for fragment in (show(report._repr_html_()), show(proof._repr_html_())):
        assert fragment.evaluate("window.ran") is None
        assert fragment.locator("script, img").count() == 0


def test_no_script_but_its_own_can_run(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    smuggled = "<script>window.ran = true</script><img src='http://x.test/'>"
    file.write_text(broken().replace("</main>", f"{smuggled}</main>"), encoding="utf-8")
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(file.as_uri())
    assert page.evaluate("window.ran") is None
    assert len([text for text in refused if "Content Security Policy" in text]) == 2
    assert page.locator(".findings output").inner_text() == "5 of 5 shown"
    page.close()


def test_a_huge_schema(show: Open) -> None:
    path = tuple(f"n{depth}" for depth in range(50))
    columns = [
        samples.column(".".join(path[:n]), *path[:n], type="STRUCT<…>") for n in range(1, 51)
    ]
    columns += [samples.column(f"c{n}") for n in range(10_000)]
    place = samples.place("column", "c9999", id=1)
    report = samples.report(samples.finding(place=place), columns=columns)
    page = show(Report.from_dict(report).to_html())
    assert page.locator(".columns tbody tr").count() == 10_050
    assert height(page) < 5000
    page.get_by_label("only those with findings").check()
    assert texts(page, ".columns tbody tr:visible .name") == ["c9999"]
