"""What Polars does with a Delta table by a REST catalog: it writes Parquet files of its own.

Arguments: the address of the catalog; the table.
"""

from __future__ import annotations

import os
import sys
from decimal import Decimal

import polars as pl
from pyiceberg.catalog import load_catalog

from steps import step

uri, name = sys.argv[1:]
# Polars takes no catalog with settings that are not text; pyiceberg's client looks at this one.
os.environ["REQUESTS_CA_BUNDLE"] = os.environ["CERTIFICATE"]
catalog = load_catalog("delta", type="rest", uri=uri, token=os.environ["TOKEN"])


def done(what: str) -> None:
    """Ends a step."""
    table = pl.scan_iceberg(name, catalog=catalog, reader_override="native").collect()
    step(what, name, table.rows())


rows = pl.DataFrame(
    {
        "id": [1, 2, 3],
        "name": ["a", None, "ü"],
        "d": [Decimal("1.25"), None, Decimal("-3.50")],
        "tags": [["x", None], [], None],
        "s": [{"n": 1}, {"n": None}, None],
    },
    schema={
        "id": pl.Int64,
        "name": pl.String,
        "d": pl.Decimal(9, 2),
        "tags": pl.List(pl.String),
        "s": pl.Struct({"n": pl.Int32}),
    },
)
rows.lazy().sink_iceberg(name, mode="append", catalog=catalog, create_if_not_exists=True)
done("create and append")
rows.with_columns(pl.col("id") + 10).lazy().sink_iceberg(name, mode="append", catalog=catalog)
done("append")
pl.delete_iceberg(catalog.load_table(name), pl.col("id").is_in([2, 13]))
done("delete")
more = rows.head(1).with_columns(pl.lit(20, pl.Int64).alias("id"), pl.lit(7, pl.Int32).alias("n"))
more.lazy().sink_iceberg(name, mode="append", schema_mode="merge", catalog=catalog)
done("append with a new column")
more.lazy().sink_iceberg(
    name, mode="overwrite", overwrite_filter=pl.col("id") == 1, catalog=catalog
)
done("overwrite of some")
more.lazy().sink_iceberg(name, mode="overwrite", catalog=catalog)
done("overwrite of all")
