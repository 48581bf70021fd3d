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
from iceberg_writer_compat import Proof, Report, Reports, TableError

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
    return texts(page, ".findings tbody tr:visible .rule")


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


def test_a_click_sorts(show: Open) -> None:
    page = show(broken())
    assert rules(page) == ["C7", "C5", "E8", "B4", "A3"]
    head = page.locator(".findings th", has_text="Rule")
    head.get_by_role("button").click()
    assert rules(page) == ["A3", "B4", "C5", "C7", "E8"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert rules(page) == ["E8", "C7", "C5", "B4", "A3"]
    page.locator(".findings th", has_text="Severity").get_by_role("button").click()
    assert rules(page) == ["E8", "C7", "C5", "B4", "A3"]
    page.locator(".findings th", has_text="Severity").get_by_role("button").click()
    assert rules(page) == ["A3", "B4", "E8", "C7", "C5"]
    assert head.get_attribute("aria-sort") is None


def test_numbers_sort_as_numbers(show: Open) -> None:
    findings = [samples.finding(f"C{n}", files=n * 999) for n in (1, 10, 2)]
    page = show(Report.from_dict(samples.report(*findings)).to_html())
    for column in ("Files", "Rule"):
        page.locator(".findings th", has_text=column).get_by_role("button").click()
        assert rules(page) == ["C1", "C2", "C10"]


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
    counts = texts(page, "main > .card .bars .number")
    assert dict(zip(texts(page, "main > .card .bars b"), counts, strict=True))["C7"] == "2"
    tables = ".overview tbody tr td:first-child"
    assert texts(page, tables) == ["spark_catalog.db.t", "db.good", "db.gone", "db.past"]
    page.locator(".overview th", has_text="Size").get_by_role("button").click()
    assert texts(page, tables) == ["db.gone", "db.good", "spark_catalog.db.t", "db.past"]
    page.locator(".overview a", has_text="db.gone").click()
    assert page.url.endswith("#table-3")
    assert "cannot be found" in page.locator("#table-3").inner_text()
    since = page.locator("#table-4 .findings tbody").inner_text()
    assert "version 3 of 2026-11-01 08:30:00 UTC by WRITE, fixed in version 7" in since


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
    assert texts(page, ".checksums .bad") == ["02"]
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
    assert EVIL in texts(page, ".findings .fix")
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
    page.get_by_label("only those with findings").check()
    assert texts(page, ".columns tbody tr:visible .name") == ["c9999"]
