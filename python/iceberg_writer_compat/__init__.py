"""Delta tables that are safe to read and write as Apache Iceberg tables.

A Spark session extension does the work in the JVM. This package configures sessions with the
extension, switches the table feature `icebergWriterCompatV1` on and off, reports which tables
comply, and publishes tables as Iceberg.
"""

from __future__ import annotations

from importlib.metadata import version as _version

from iceberg_writer_compat.bulk import EnableResults, TableProgress, enable_all
from iceberg_writer_compat.checks import (
    check,
    explain,
    history,
    rules,
    tables_in,
    verify,
    would_break,
)
from iceberg_writer_compat.exceptions import (
    IcebergWriterCompatError,
    JournalError,
    LogStoreError,
    NoActiveSessionError,
    NotInstalledError,
    ReaderNotInstalledError,
    SparkConnectNotSupportedError,
    UnknownReportFormatError,
    UnknownRuleError,
    UnreadableTableError,
    UnsupportedSparkVersionError,
)
from iceberg_writer_compat.proving import prove
from iceberg_writer_compat.proving.proof import (
    Check,
    Difference,
    Outcome,
    Proof,
    ReaderFacts,
    ReaderName,
    Reading,
)
from iceberg_writer_compat.publishing import (
    PublishProblem,
    PublishResult,
    PublishStatus,
    publish,
    status,
)
from iceberg_writer_compat.remedy import Remedy
from iceberg_writer_compat.report import (
    Audit,
    Column,
    Enabling,
    Facts,
    Feature,
    FileGroup,
    Finding,
    History,
    Place,
    Plan,
    Report,
    Reports,
    RuleText,
    Step,
    TableError,
)
from iceberg_writer_compat.serving import CatalogServer, serve
from iceberg_writer_compat.session import (
    configure_spark_with_iceberg_writer_compat,
    maven_coordinate,
)
from iceberg_writer_compat.tables import (
    DisableResult,
    EnableResult,
    EnableWarning,
    disable_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
)
from iceberg_writer_compat.todo import ToDo

__all__ = [
    "Audit",
    "CatalogServer",
    "Check",
    "Column",
    "Difference",
    "DisableResult",
    "EnableResult",
    "EnableResults",
    "EnableWarning",
    "Enabling",
    "Facts",
    "Feature",
    "FileGroup",
    "Finding",
    "History",
    "IcebergWriterCompatError",
    "JournalError",
    "LogStoreError",
    "NoActiveSessionError",
    "NotInstalledError",
    "Outcome",
    "Place",
    "Plan",
    "Proof",
    "PublishProblem",
    "PublishResult",
    "PublishStatus",
    "ReaderFacts",
    "ReaderName",
    "ReaderNotInstalledError",
    "Reading",
    "Remedy",
    "Report",
    "Reports",
    "RuleText",
    "SparkConnectNotSupportedError",
    "Step",
    "TableError",
    "TableProgress",
    "ToDo",
    "UnknownReportFormatError",
    "UnknownRuleError",
    "UnreadableTableError",
    "UnsupportedSparkVersionError",
    "__version__",
    "check",
    "configure_spark_with_iceberg_writer_compat",
    "disable_iceberg_writer_compat",
    "enable_all",
    "enable_iceberg_writer_compat",
    "explain",
    "history",
    "is_iceberg_writer_compat_enabled",
    "maven_coordinate",
    "prove",
    "publish",
    "rules",
    "serve",
    "status",
    "tables_in",
    "verify",
    "would_break",
]

__version__ = _version("iceberg-writer-compat")
