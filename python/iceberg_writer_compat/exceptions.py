"""The errors that Python itself raises.

A refused change to a table comes from the JVM instead, as one of PySpark's exceptions, with
`getCondition()` and `getSqlState()`.
"""

from __future__ import annotations


class IcebergWriterCompatError(Exception):
    """The base of all errors raised by this package."""


class NoActiveSessionError(IcebergWriterCompatError):
    """There is no session, or it was stopped."""


class SparkConnectNotSupportedError(IcebergWriterCompatError):
    """The session is a Spark Connect client, which has no access to the JVM."""


class NotInstalledError(IcebergWriterCompatError):
    """The jar is missing, or the session does not have the extension: rules are not checked."""


class ReaderNotInstalledError(IcebergWriterCompatError):
    """No Iceberg reader is installed, or not the requested one."""


class UnsupportedSparkVersionError(IcebergWriterCompatError):
    """There is no jar for the installed PySpark."""


class UnreadableTableError(IcebergWriterCompatError):
    """A table or its log cannot be read, and the cause is not one of PySpark's exceptions.

    Attributes:
        condition: The error's condition, if it has one.
    """

    def __init__(self, message: str, condition: str | None) -> None:
        """The text of the error, and its condition."""
        super().__init__(message)
        self.condition = condition


class UnknownRuleError(IcebergWriterCompatError, LookupError):
    """There is no rule of this id, and no condition of this name."""


class UnknownReportFormatError(IcebergWriterCompatError, ValueError):
    """A report has a format of another version of this project."""


class JournalError(IcebergWriterCompatError):
    """The journal of a run over many tables cannot be read or written."""


class LogStoreError(IcebergWriterCompatError):
    """Entries of Delta's log store in DynamoDB cannot be removed."""
