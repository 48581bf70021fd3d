"""Offers the tables of a session to Iceberg clients by URL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

from iceberg_writer_compat import _jvm

_HIGHEST_PORT = 65535

# What can become of the delete files of clients.
ROW_LEVEL_DELETES = ("refuse", "rewrite")


class CatalogServer:
    """A running Iceberg REST catalog; as a context manager it is stopped at the end.

    Attributes:
        uri: Where clients find it.
    """

    def __init__(self, server: Any) -> None:
        """A server that the JVM has started."""
        self._server = server
        self.uri = str(server.uri())

    def stop(self) -> None:
        """Takes no more requests, finishes those that it has, and stops."""
        self._server.stop()

    def __enter__(self) -> CatalogServer:
        """The server itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops it."""
        self.stop()


def serve(
    spark: SparkSession,
    host: str = "127.0.0.1",
    port: int = 8181,
    token: str | None = None,
    *,
    tls_cert: str | os.PathLike[str] | None = None,
    tls_key: str | os.PathLike[str] | None = None,
    paths: Mapping[str, str | os.PathLike[str]] | None = None,
    row_level_deletes: str = "refuse",
) -> CatalogServer:
    """Starts an Iceberg REST catalog over the Delta tables with the feature.

    Its namespaces are the databases of the session's own catalog. Each commit of a client is one
    commit of Delta. The server ends with the session.

    Args:
        spark: A session that has the extension and Iceberg's library.
        host: The address to listen on. Without a token it has to be one of this machine alone.
        port: The port to listen on; 0 picks a free one.
        token: The bearer token that clients have to send.
        tls_cert: A PEM file with the server's certificate and those that vouch for it.
        tls_key: A PEM file with the key of the certificate, as PKCS#8.
        paths: Folders with Delta tables that the session's catalog does not have, by the names that
            they are offered as, such as `{"db.orders": "/data/orders"}`.
        row_level_deletes: What becomes of commits with delete files, as DuckDB's UPDATE and DELETE
            make them: "refuse", or "rewrite" to write the data files anew without the deleted rows.
    """
    return started(
        spark,
        host,
        port,
        token,
        tls_cert,
        tls_key,
        paths or {},
        row_level_deletes,
        prints=False,
    )


def started(
    spark: SparkSession,
    host: str,
    port: int,
    token: str | None,
    tls_cert: str | os.PathLike[str] | None,
    tls_key: str | os.PathLike[str] | None,
    paths: Mapping[str, str | os.PathLike[str]],
    row_level_deletes: str,
    prints: bool,
) -> CatalogServer:
    """The same; the JVM prints each request to its standard output if it `prints`."""
    number = _jvm.whole_number("port", port, least=0)
    if number is None or number > _HIGHEST_PORT:
        raise ValueError(f"port is a number from 0 to {_HIGHEST_PORT}, but not {port}.")
    if (tls_cert is None) != (tls_key is None):
        raise ValueError("tls_cert and tls_key are given together or not at all.")
    if token is not None and not token.strip():
        raise ValueError("The token is empty.")
    if row_level_deletes not in ROW_LEVEL_DELETES:
        raise ValueError(
            f"row_level_deletes is {' or '.join(ROW_LEVEL_DELETES)}, but not {row_level_deletes!r}."
        )
    door = _jvm.require(spark)
    folders = {_jvm.text(name): _jvm.table_name(folder) for name, folder in paths.items()}
    with _jvm.without_stack():
        server = door.serve(
            spark._jsparkSession,
            _jvm.text(host),
            number,
            None if token is None else _jvm.text(token.strip()),
            None if tls_cert is None else _jvm.table_name(tls_cert),
            None if tls_key is None else _jvm.table_name(tls_key),
            folders,
            row_level_deletes,
            prints,
        )
    return CatalogServer(server)
