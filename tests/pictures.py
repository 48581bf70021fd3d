"""The pictures of docs/images: pages of real tables, as the tests' browser shows them.

Run by `make pictures`. The pages have the time at which they were made, so each run writes other
files; run it when the pages have changed.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser
from pyspark.sql import SparkSession

import browser as browsers
import sessions
from conftest import REPOSITORY
from iceberg_writer_compat import (
    check,
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    prove,
    publish,
    tables_in,
)

IMAGES = REPOSITORY / "docs" / "images"

# What a picture may weigh; a test asserts it.
LARGEST = 150_000

_FEATURE = "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"

# Tables as they are found: in order, from before column mapping, with what has to go first.
_STATEMENTS = (
    "CREATE SCHEMA shop",
    f"CREATE TABLE shop.customers (id BIGINT, name STRING, since DATE) USING delta {_FEATURE}",
    "INSERT INTO shop.customers VALUES (1, 'Ada', DATE'2026-01-31'), (2, 'Grace', NULL)",
    "INSERT INTO shop.customers VALUES (3, 'Katherine', DATE'2026-02-28')",
    "CREATE TABLE shop.addresses (id BIGINT, city STRING) USING delta "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "INSERT INTO shop.addresses VALUES (1, 'London')",
    "CREATE TABLE shop.clicks (id BIGINT, page STRING) USING delta",
    "INSERT INTO shop.clicks VALUES (1, 'home'), (2, 'help')",
    "CREATE TABLE shop.orders (id BIGINT, status SMALLINT, amount DOUBLE) USING delta "
    "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
    "INSERT INTO shop.orders SELECT id, CAST(id % 3 AS SMALLINT), id * 1.5 FROM range(100)",
    "ALTER TABLE shop.orders ADD CONSTRAINT positive CHECK (amount >= 0)",
    "DELETE FROM shop.orders WHERE id = 7",
)


def main() -> None:
    """Makes the tables and the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        session(Path(folder)) as spark,
        browsers.headless() as browser,
    ):
        for statement in _STATEMENTS:
            spark.sql(statement)
        publish(spark, "shop.customers")
        pages = {
            "check": check(spark, "shop.orders").to_html(),
            "overview": check(spark, tables_in(spark, "shop")).to_html(),
            "plan": enable_iceberg_writer_compat(spark, "shop.clicks", dry_run=True).to_html(),
            "proof": prove(spark, "shop.customers", ["pyiceberg", "duckdb"]).to_html(),
        }
        for name, html in pages.items():
            # The scratch folder has another name each time.
            picture = taken(browser, html.replace(folder, "/data"), Path(folder) / f"{name}.html")
            (IMAGES / f"{name}.png").write_bytes(picture)
            print(f"docs/images/{name}.png: {len(picture)} bytes")


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    """A session with the extension that leaves nothing outside of the folder."""
    builder = sessions.local_builder(folder / "warehouse").config("spark.ui.enabled", "false")
    spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
    yield spark
    spark.stop()


def taken(browser: Browser, html: str, file: Path) -> bytes:
    """The top of a page as a PNG of few colours."""
    file.write_text(html, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 720}, color_scheme="light")
    page.goto(file.as_uri())
    height = min(720, page.evaluate("document.documentElement.scrollHeight"))
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": 1000, "height": height})
    page.close()
    small = io.BytesIO()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(64).save(small, "PNG", optimize=True)
    return small.getvalue()


if __name__ == "__main__":
    main()
