"""What pyiceberg does with a Delta table by a REST catalog.

Arguments: the address of the catalog; the table.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import BadRequestError, UnauthorizedError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, StructType

from steps import step

uri, name = sys.argv[1:]
settings: dict[str, Any] = {"type": "rest", "uri": uri}
settings["ssl"] = {"cabundle": os.environ["CERTIFICATE"]}
catalog = load_catalog("delta", token=os.environ["TOKEN"], **settings)
columns = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "p", StringType(), required=False),
    NestedField(4, "n", IntegerType(), required=False),
)
by_p = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "p"))


def rows(*values: tuple[object, ...], of: Schema | None = None) -> Any:
    """Rows with the columns that the table has now, or with others."""
    arrow = (of or table.schema()).as_arrow()
    named = [dict(zip(arrow.names, value, strict=True)) for value in values]
    return pa.Table.from_pylist(named, schema=arrow)


def done(what: str) -> None:
    """Ends a step."""
    step(what, name, (tuple(row.values()) for row in table.scan().to_arrow().to_pylist()))


with pytest.raises(UnauthorizedError):
    load_catalog("other", token="wrong", **settings)
with pytest.raises(BadRequestError, match="PARTITION_TRANSFORM"):
    bucket = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b"))
    catalog.create_table(f"{name}_b", columns, partition_spec=bucket)
assert not catalog.table_exists(f"{name}_b")

table = catalog.create_table(name, columns, partition_spec=by_p)
done("create")
table.append(rows((1, "a", "x", 1), (2, "b", "x", 2), (3, "c", "a b/%20=ü", 3), (4, "d", None, 4)))
done("append")
table.delete("id = 2")
done("delete")
table.overwrite(rows((3, "C", "x", 30), (5, "e", "y", 5)), overwrite_filter="id = 3")
done("overwrite")
table.upsert(rows((5, "E", "y", 50), (6, "f", "z", 6)), join_cols=["id"])
done("upsert")
table.dynamic_partition_overwrite(rows((7, "g", "y", 7)))
done("dynamic overwrite")
with table.update_schema() as update:
    update.add_column("s", StructType(NestedField(10, "l", ListType(11, StringType()))))
    update.rename_column("name", "title")
    update.update_column("n", LongType())
done("evolution")
with table.transaction() as transaction:
    with transaction.update_schema() as update:
        update.delete_column("s")
        update.add_column("s", StringType())
    transaction.set_properties({"k": "v"})
    now = transaction.table_metadata.schema()
    transaction.append(rows((8, "h", "w", 2**40, "text"), of=now))
assert catalog.load_table(name).properties["k"] == "v"
done("transaction")

with pytest.raises(BadRequestError, match="E1"):
    outside = f"{table.location()}/data/by-hand.parquet"
    file = outside.removeprefix("file:")
    with_ids = rows((9, "i", "q", 9, None))
    names = with_ids.schema.names
    without_ids = pa.schema([pa.field(n, with_ids.schema.field(n).type) for n in names])
    pq.write_table(with_ids.cast(without_ids), file)
    table.add_files([outside])
table = catalog.load_table(name)
done("files without ids")
pq.write_table(with_ids, file)
table.add_files([outside])
done("add files")
with pytest.raises(BadRequestError, match="PLACE"):
    elsewhere = f"{os.environ['ELSEWHERE']}/file.parquet"
    pq.write_table(with_ids, elsewhere)
    table.add_files([f"file:{elsewhere}"])
table = catalog.load_table(name)
done("files elsewhere")
table.overwrite(rows((10, "k", "x", 10, "t")))
done("overwrite of all")
assert catalog.table_exists(name) and ("default", name.split(".")[1]) in catalog.list_tables(
    "default"
)
