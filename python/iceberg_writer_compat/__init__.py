"""Delta tables that are safe to read and write as Apache Iceberg tables.

The work is done in the JVM by a Spark session extension; this package starts sessions that have
it, and switches the table feature `icebergWriterCompatV1` on and off.
"""

from __future__ import annotations

from importlib.metadata import version as _version

from iceberg_writer_compat.exceptions import (
    IcebergWriterCompatError,
    NoActiveSessionError,
    NotInstalledError,
    SparkConnectNotSupportedError,
    UnsupportedSparkVersionError,
)
from iceberg_writer_compat.session import (
    configure_spark_with_iceberg_writer_compat,
    maven_coordinate,
)
from iceberg_writer_compat.tables import (
    DisableResult,
    EnableResult,
    disable_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
)

__all__ = [
    "DisableResult",
    "EnableResult",
    "IcebergWriterCompatError",
    "NoActiveSessionError",
    "NotInstalledError",
    "SparkConnectNotSupportedError",
    "UnsupportedSparkVersionError",
    "__version__",
    "configure_spark_with_iceberg_writer_compat",
    "disable_iceberg_writer_compat",
    "enable_iceberg_writer_compat",
    "is_iceberg_writer_compat_enabled",
    "maven_coordinate",
]

__version__ = _version("iceberg-writer-compat")
