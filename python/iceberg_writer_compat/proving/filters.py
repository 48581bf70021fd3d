"""Filters on one column, in the syntax of the readers."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from iceberg_writer_compat.proving.checksums import Path

Operation = Literal["=", "<", "<=", ">", ">=", "is null", "is not null", "is nan"]
Value: TypeAlias = "bool | int | float | Decimal | str | bytes | date | datetime"

_ICEBERG = {
    "=": "eq",
    "<": "lt",
    "<=": "lt-eq",
    ">": "gt",
    ">=": "gt-eq",
    "is null": "is-null",
    "is not null": "not-null",
    "is nan": "is-nan",
}


@dataclass(frozen=True)
class Filter:
    """A filter on one column.

    Engines differ in whether NaN is greater than every number. Comparisons of numbers therefore
    exclude NaN, and a separate filter selects it.

    Attributes:
        path: The column.
        kind: Its type.
        operation: The operator.
        value: The value that the column is compared with; a time is in UTC and has no zone.
    """

    path: Path
    kind: pa.DataType
    operation: Operation
    value: Value | None = None

    @property
    def without_nan(self) -> bool:
        """Whether NaN has to be excluded."""
        return pa.types.is_floating(self.kind) and self.operation in ("<", "<=", ">", ">=")

    def spark(self) -> str:
        """The filter in Spark SQL, which reports show too."""
        if self.value is None:
            literal = ""
        elif isinstance(self.value, bytes):
            literal = f"X'{self.value.hex()}'"
        elif isinstance(self.value, str):
            escaped = self.value.replace("\\", "\\\\").replace("'", "\\'")
            literal = f"'{escaped}'"
        else:
            literal = f"CAST('{self.text()}' AS {_spark_type(self.kind)})"
        return self._sql("`", literal)

    def duckdb(self) -> str:
        """The filter in DuckDB's SQL."""
        if self.value is None:
            literal = ""
        elif isinstance(self.value, bytes):
            literal = "'" + "".join(f"\\x{byte:02X}" for byte in self.value) + "'::BLOB"
        elif isinstance(self.value, str):
            literal = "'" + self.value.replace("'", "''") + "'"
        else:
            literal = f"CAST('{self.text()}' AS {_duckdb_type(self.kind)})"
        return self._sql('"', literal)

    def iceberg(self) -> str | None:
        """The filter in Iceberg's JSON; None if JSON cannot represent it."""
        if isinstance(self.value, float) and not math.isfinite(self.value):
            return None
        term = ".".join(self.path)
        predicate: dict[str, Any] = {"type": _ICEBERG[self.operation], "term": term}
        if isinstance(self.value, bytes):
            predicate["value"] = self.value.hex().upper()
        elif isinstance(self.value, (date, Decimal)):
            predicate["value"] = self.text()
        elif self.value is not None:
            predicate["value"] = self.value
        if self.without_nan:
            other = {"type": "not-nan", "term": term}
            predicate = {"type": "and", "left": predicate, "right": other}
        return json.dumps(predicate)

    def text(self) -> str:
        """The value as text that engines and Iceberg's JSON parse in the same way."""
        if isinstance(self.value, datetime):
            zone = "+00:00" if self.kind.tz else ""
            return self.value.isoformat(timespec="microseconds") + zone
        if isinstance(self.value, Decimal):
            return format(self.value, "f")
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)

    def _sql(self, quote: str, literal: str) -> str:
        column = ".".join(quote + part.replace(quote, quote * 2) + quote for part in self.path)
        if self.operation == "is nan":
            # In Spark isnan(null) is false, in other engines it is null.
            return f"{column} IS NOT NULL AND isnan({column})"
        if self.value is None:
            return f"{column} {self.operation.upper()}"
        compared = f"{column} {self.operation} {literal}"
        return f"{compared} AND NOT isnan({column})" if self.without_nan else compared


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    return _sql_type(kind)


def _duckdb_type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    return _sql_type(kind)


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    names = {
        pa.bool_(): "BOOLEAN",
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.date32(): "DATE",
    }
    return names[kind]
