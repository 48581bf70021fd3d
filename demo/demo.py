"""A table with icebergWriterCompatV1, from one property to what readers of Iceberg see.

Everything happens in a scratch folder, which is removed at the end.
"""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_writer_compat import (
    Proof,
    __version__,
    configure_spark_with_iceberg_writer_compat,
    prove,
    publish,
    serve,
)


def main() -> None:
    """Runs the demo."""
    started = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="iceberg-writer-compat-demo-"))
    try:
        spark = start_session(scratch)
        print(f"Iceberg Writer Compat {__version__} on Spark {spark.version}")
        show(spark, scratch / "warehouse" / "orders")
        spark.stop()
    finally:
        shutil.rmtree(scratch)
    print(f"\nDone in {time.monotonic() - started:.0f} s; the scratch folder is removed.")


def start_session(scratch: Path) -> SparkSession:
    """A local session that is quiet and leaves nothing outside of the scratch folder."""
    builder = (
        SparkSession.builder.appName("demo")
        .master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    )
    return configure_spark_with_iceberg_writer_compat(builder).getOrCreate()


def show(spark: SparkSession, folder: Path) -> None:
    """Creates a table, appends to it, evolves it, and has one change refused."""
    title("A new table needs one property")
    sql(
        spark,
        """
        CREATE TABLE orders (
          id BIGINT,
          customer STRUCT<name: STRING>,
          items ARRAY<STRUCT<sku: STRING, price: DECIMAL(9, 2)>>)
        USING delta
        TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')
        """,
    )
    print("  properties:")
    show_properties(folder)

    title("Append, then evolve the schema, at the top and inside the array")
    sql(
        spark,
        """
        INSERT INTO orders
        VALUES (1, named_struct('name', 'Ada'), array(named_struct('sku', 'A-7', 'price', 9.50)))
        """,
    )
    sql(spark, "ALTER TABLE orders ADD COLUMNS (placed TIMESTAMP, items.element.quantity INT)")
    sql(spark, "ALTER TABLE orders RENAME COLUMN customer TO buyer")
    sql(
        spark,
        """
        INSERT INTO orders
        VALUES (2, named_struct('name', 'Grace'),
                array(named_struct('sku', 'B-2', 'price', 4.25, 'quantity', 3)),
                TIMESTAMP '2026-01-31 12:00:00')
        """,
    )
    for row in spark.table("orders").orderBy("id").toJSON().collect():
        print(f"    {row}")

    title("A change that Iceberg could not follow is refused, and nothing is committed")
    sql(spark, "ALTER TABLE orders ADD COLUMN priority SMALLINT")

    title("What the log now says")
    show_log(folder)

    title("Published as Iceberg, and read by Iceberg readers")
    published = publish(spark, "orders")
    print(f"  {published.metadata_location}")
    show_proof(prove(spark, "orders", ["pyiceberg", "duckdb"], checks=["schema", "rows", "values"]))

    title("DuckDB inserts into the Delta table, by the Iceberg REST catalog")
    with serve(spark, port=0) as server:
        print(f"  Iceberg REST catalog at {server.uri}")
        insert_by_duckdb(server.uri)
    show_last_commit(spark)
    for row in spark.table("orders").orderBy("id").toJSON().collect():
        print(f"    {row}")


def title(text: str) -> None:
    """Prints a heading."""
    print(f"\n== {text}")


def sql(spark: SparkSession, statement: str) -> None:
    """Prints a statement, runs it, and prints its error if there is one."""
    lines = [line for line in statement.splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    for number, line in enumerate(lines):
        print(("  > " if number == 0 else "    ") + line[indent:])
    try:
        spark.sql(statement)
    except PySparkException as error:
        print(f"  {type(error).__name__}, SQLSTATE {error.getSqlState()}:")
        for line in str(error).split("\n\nJVM stacktrace:")[0].splitlines():
            print(f"    {line}")


def insert_by_duckdb(uri: str) -> None:
    """Inserts a row by DuckDB, which knows nothing of Delta here."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("httpfs", "avro", "iceberg"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = Path(str(package.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
    statements = (
        f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')",
        "INSERT INTO lake.default.orders VALUES (3, {'name': 'Edsger'},"
        " [{'sku': 'C-1', 'price': 1.50, 'quantity': 9}], TIMESTAMPTZ '2026-02-01 09:00:00Z')",
    )
    for statement in statements:
        print(f"  D {statement}")
        connection.execute(statement)
    connection.close()


def show_last_commit(spark: SparkSession) -> None:
    """Prints what Delta's history says of the newest version."""
    (commit,) = spark.sql("DESCRIBE HISTORY orders LIMIT 1").collect()
    print(f"  version {commit.version} of the Delta table: {commit.operation}")


def show_properties(folder: Path) -> None:
    """Prints what followed from the one property."""
    metadata = last_action(folder, "metaData")
    for key, value in sorted(metadata["configuration"].items()):
        if key.startswith(("delta.enable", "delta.columnMapping")):
            print(f"    {key} = {value}")


def show_log(folder: Path) -> None:
    """Prints protocol, properties, and each column with its id and physical name."""
    protocol = last_action(folder, "protocol")
    print(
        f"  protocol: reader {protocol['minReaderVersion']}, writer {protocol['minWriterVersion']}"
    )
    for feature in sorted(protocol["writerFeatures"]):
        print(f"    {feature}")
    print("  properties:")
    show_properties(folder)
    print("  columns:")
    print(f"    {'column':<28}{'id':>4}  {'physical name':<15}type")
    schema = json.loads(last_action(folder, "metaData")["schemaString"])
    for path, column_id, physical_name, type_name in columns(schema):
        print(f"    {path:<28}{column_id:>4}  {physical_name:<15}{type_name}")


def last_action(folder: Path, name: str) -> dict[str, Any]:
    """The last action of a kind in a table's log."""
    found: dict[str, Any] = {}
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            found = json.loads(line).get(name, found)
    return found


def show_proof(proof: Proof) -> None:
    """Prints what each reader has, side by side."""
    print(f"  {'':<24}" + "".join(f"{reading.reader:<18}" for reading in proof.readings))
    print(f"  {'rows':<24}" + "".join(f"{reading.rows:<18}" for reading in proof.readings))
    for number, column in enumerate(proof.columns):
        sums = (reading.checksums[number] for reading in proof.readings)
        print(f"  {column:<24}" + "".join(f"{checksum:<18}" for checksum in sums))
    print(f"  {proof.verdict}")


Column = tuple[str, int, str, str]


def columns(struct: dict[str, Any], prefix: str = "") -> Iterator[Column]:
    """Every field at every depth, and every element, key and value."""
    for field in struct["fields"]:
        metadata = field["metadata"]
        path = prefix + field["name"]
        physical_name = metadata["delta.columnMapping.physicalName"]
        type_name = name_of(field["type"])
        yield path, metadata["delta.columnMapping.id"], physical_name, type_name
        nested = metadata.get("delta.columnMapping.nested.ids", {})
        yield from below(field["type"], path, physical_name, nested)


def below(data_type: Any, path: str, way: str, nested: dict[str, int]) -> Iterator[Column]:
    """What is inside of a struct, an array or a map."""
    if not isinstance(data_type, dict):
        return
    if data_type["type"] == "struct":
        yield from columns(data_type, f"{path}.")
        return
    parts = {"array": ["element"], "map": ["key", "value"]}[data_type["type"]]
    for part in parts:
        inner = data_type[f"{part}Type"]
        yield f"{path}.{part}", nested[f"{way}.{part}"], "", name_of(inner)
        yield from below(inner, f"{path}.{part}", f"{way}.{part}", nested)


def name_of(data_type: Any) -> str:
    """A type without what is inside of it."""
    return str(data_type["type"] if isinstance(data_type, dict) else data_type)


if __name__ == "__main__":
    main()
