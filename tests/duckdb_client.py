"""DuckDB with a REST catalog."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import duckdb


def attached(uri: str) -> duckdb.DuckDBPyConnection:
    """A connection that has the catalog as `delta`; its token is in the environment.

    So is the certificate that is trusted, if the catalog has one of its own.
    """
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for extension in ("httpfs", "avro", "iceberg"):
        spec = find_spec(f"duckdb_extension_{extension}")
        assert spec is not None and spec.origin is not None
        folder = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{folder / extension}.duckdb_extension'")
    if "CERTIFICATE" in os.environ:
        connection.execute(f"SET ca_cert_file = '{os.environ['CERTIFICATE']}'")
    token = os.environ["TOKEN"]
    connection.execute(f"ATTACH '' AS delta (TYPE iceberg, ENDPOINT '{uri}', TOKEN '{token}')")
    return connection
