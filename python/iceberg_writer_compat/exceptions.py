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
    """The session talks to a remote Spark, whose JVM cannot be reached from here."""


class NotInstalledError(IcebergWriterCompatError):
    """The jar is missing, or the extension is not in the session: commits are not guarded."""


class ReaderNotInstalledError(IcebergWriterCompatError):
    """No reader of Iceberg tables is there, or not the one that was asked for."""


class UnsupportedSparkVersionError(IcebergWriterCompatError):
    """There is no jar for the installed PySpark."""


class UnreadableTableError(IcebergWriterCompatError):
    """A table or its log cannot be read, for a reason that is none of PySpark's exceptions.

    Attributes:
        condition: The error's condition, if it has one.
    """

    def __init__(self, message: str, condition: str | None) -> None:
        """The text of the error, and its condition."""
        super().__init__(message)
        self.condition = condition


class UnknownReportFormatError(IcebergWriterCompatError, ValueError):
    """A report was written by a version of this project that this one cannot read."""


class JournalError(IcebergWriterCompatError):
    """The journal of a run over many tables cannot be read or written."""
