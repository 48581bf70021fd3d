"""Random tables and operations: nothing bad is committed, nothing legal refused.

The oracle judges every version; the model here knows what is legal and what rows there must be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import oracle
from conftest import PROPERTIES, Table

SAMPLES = {
    "INT": "1",
    "BIGINT": "9000000000L",
    "FLOAT": "CAST('NaN' AS FLOAT)",
    "DOUBLE": "-0.0D",
    "DECIMAL(9,2)": "CAST(1.25 AS DECIMAL(9,2))",
    "DECIMAL(38,4)": "CAST('9999999999999999999999999999999999.9999' AS DECIMAL(38,4))",
    "STRING": "'text'",
    "BINARY": "X'00FF41'",
    "BOOLEAN": "true",
    "DATE": "DATE'1900-01-01'",
    "TIMESTAMP": "TIMESTAMP'2024-01-02 03:04:05.123456'",
}
SUFFIXES = ["", " with space", ".dot", "_ü", "'quote", "-"]


@dataclass(frozen=True)
class Type:
    """A type: a primitive by name, or a struct, an array or a map of others."""

    name: str
    fields: tuple[tuple[str, Type], ...] = ()
    parts: tuple[Type, ...] = ()

    @property
    def sql(self) -> str:
        """As a statement spells it."""
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(f'{quote(n)}: {t.sql}' for n, t in self.fields)}>"
        if self.parts:
            return f"{self.name}<{', '.join(part.sql for part in self.parts)}>"
        return self.name

    @property
    def sample(self) -> str:
        """An expression of this type."""
        if self.name == "STRUCT":
            listed = ", ".join(f"{literal(n)}, {t.sample}" for n, t in self.fields)
            return f"named_struct({listed})"
        if self.parts:
            return f"{self.name}({', '.join(part.sample for part in self.parts)})"
        return SAMPLES[self.name]


def quote(name: str) -> str:
    """A name as an identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as a string literal."""
    return "'" + text.replace("'", "\\'") + "'"


def path_sql(path: tuple[str, ...]) -> str:
    """A path as a statement spells it."""
    return ".".join(map(quote, path))


@dataclass
class Names:
    """Gives out names that were never given before."""

    given: int = 0

    def new(self, draw: st.DataObject) -> str:
        """A new name, at times an odd one."""
        self.given += 1
        return f"c{self.given}{draw.draw(st.sampled_from(SUFFIXES))}"


def draw_type(draw: st.DataObject, names: Names, depth: int) -> Type:
    """Any type of the given depth at the most."""
    kinds = ["PRIMITIVE", "PRIMITIVE", "STRUCT", "ARRAY", "MAP"] if depth else ["PRIMITIVE"]
    kind = draw.draw(st.sampled_from(kinds))
    if kind == "PRIMITIVE":
        return Type(draw.draw(st.sampled_from(sorted(SAMPLES))))
    if kind == "STRUCT":
        return draw_struct(draw, names, depth - 1)
    value = draw_type(draw, names, depth - 1)
    if kind == "ARRAY":
        return Type("ARRAY", parts=(value,))
    key = Type(draw.draw(st.sampled_from(["INT", "STRING", "DATE"])))
    if depth > 1 and draw.draw(st.booleans()):
        key = Type("STRUCT", ((names.new(draw), key),))
    return Type("MAP", parts=(key, value))


def draw_struct(draw: st.DataObject, names: Names, depth: int) -> Type:
    """A struct of one to three fields."""
    count = draw.draw(st.integers(1, 3))
    fields = tuple((names.new(draw), draw_type(draw, names, depth)) for _ in range(count))
    return Type("STRUCT", fields)


def structs(root: Type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Type]]:
    """All structs that may change, which those below a map key may not."""
    if root.name == "STRUCT":
        yield path, root
        for name, below in root.fields:
            yield from structs(below, (*path, name))
    elif root.name == "ARRAY":
        yield from structs(root.parts[0], (*path, "element"))
    elif root.name == "MAP":
        yield from structs(root.parts[1], (*path, "value"))


def changed(root: Type, path: tuple[str, ...], to: Type) -> Type:
    """The type with another struct at a path."""
    if not path:
        return to
    first, rest = path[0], path[1:]
    if root.name == "STRUCT":
        fields = tuple((n, changed(t, rest, to) if n == first else t) for n, t in root.fields)
        return replace(root, fields=fields)
    parts = list(root.parts)
    parts[-1] = changed(parts[-1], rest, to)
    return replace(root, parts=tuple(parts))


@dataclass
class Model:
    """What the table must be."""

    table: Table
    schema: Type
    names: Names
    rows: int = 0
    versions: dict[int, tuple[Type, int]] = field(default_factory=dict)

    def sql(self, statement: str) -> None:
        """Runs a statement, which is legal and so must succeed."""
        self.table.spark.sql(statement).collect()

    def add(self, draw: st.DataObject) -> None:
        """Adds a column somewhere."""
        path, struct = draw.draw(st.sampled_from(list(structs(self.schema))))
        name, added = self.names.new(draw), draw_type(draw, self.names, 2)
        where = path_sql((*path, name))
        self.sql(f"ALTER TABLE {self.table} ADD COLUMN {where} {added.sql}")
        fields = (*struct.fields, (name, added))
        self.schema = changed(self.schema, path, replace(struct, fields=fields))

    def rename(self, draw: st.DataObject) -> None:
        """Renames a field somewhere."""
        path, struct = draw.draw(st.sampled_from(list(structs(self.schema))))
        old, kept = draw.draw(st.sampled_from(struct.fields))
        name = self.names.new(draw)
        where = path_sql((*path, old))
        self.sql(f"ALTER TABLE {self.table} RENAME COLUMN {where} TO {quote(name)}")
        fields = tuple((name, kept) if n == old else (n, t) for n, t in struct.fields)
        self.schema = changed(self.schema, path, replace(struct, fields=fields))

    def drop(self, draw: st.DataObject) -> None:
        """Drops a field somewhere, if its struct has another."""
        path, struct = draw.draw(st.sampled_from(list(structs(self.schema))))
        if len(struct.fields) > 1:
            dropped, _ = draw.draw(st.sampled_from(struct.fields))
            self.sql(f"ALTER TABLE {self.table} DROP COLUMN {path_sql((*path, dropped))}")
            fields = tuple(f for f in struct.fields if f[0] != dropped)
            self.schema = changed(self.schema, path, replace(struct, fields=fields))

    def insert(self, draw: st.DataObject) -> None:
        """Adds a row."""
        listed = ", ".join(t.sample for _, t in self.schema.fields)
        self.sql(f"INSERT INTO {self.table} SELECT {listed}")
        self.rows += 1

    def evolve(self, draw: st.DataObject) -> None:
        """Adds a row that brings a column along."""
        name, added = self.names.new(draw), draw_type(draw, self.names, 2)
        fields = (*self.schema.fields, (name, added))
        self._write(fields, "append", "mergeSchema")
        self.schema = replace(self.schema, fields=fields)
        self.rows += 1

    def overwrite(self, draw: st.DataObject) -> None:
        """Replaces rows and schema, keeping the first column."""
        kept = self.schema.fields[:1]
        self.schema = Type("STRUCT", kept + draw_struct(draw, self.names, 3).fields)
        self._write(self.schema.fields, "overwrite", "overwriteSchema")
        self.rows = 1

    def create_again(self, draw: st.DataObject) -> None:
        """Replaces the table with an empty one."""
        self.schema = draw_struct(draw, self.names, 3)
        listed = ", ".join(f"{quote(n)} {t.sql}" for n, t in self.schema.fields)
        self.sql(f"CREATE OR REPLACE TABLE {self.table} ({listed}) USING delta")
        self.rows = 0

    def delete(self, draw: st.DataObject) -> None:
        """Removes all rows."""
        self.sql(f"DELETE FROM {self.table}")
        self.rows = 0

    def optimize(self, draw: st.DataObject) -> None:
        """Compacts the files."""
        self.sql(f"OPTIMIZE {self.table}")

    def restore(self, draw: st.DataObject) -> None:
        """Returns to an earlier version."""
        earlier = [v for v in self.versions if v < max(self.versions)]
        if earlier:
            version = draw.draw(st.sampled_from(earlier))
            self.sql(f"RESTORE TABLE {self.table} TO VERSION AS OF {version}")
            self.schema, self.rows = self.versions[version]

    def illegal(self, draw: st.DataObject) -> None:
        """Tries what must be refused."""
        path, _ = draw.draw(st.sampled_from(list(structs(self.schema))))
        where = path_sql((*path, self.names.new(draw)))
        bad = draw.draw(st.sampled_from(["TINYINT", "ARRAY<SMALLINT>", "MAP<INT, VARIANT>"]))
        with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_TYPE"):
            self.sql(f"ALTER TABLE {self.table} ADD COLUMN {where} {bad}")

    def check(self) -> None:
        """The table is what the model says, and right."""
        assert oracle.check(self.table.folder) == []
        log = self.table.log
        assert log.columns == [name for name, _ in self.schema.fields]
        assert self.table.spark.table(self.table.name).count() == self.rows
        self.versions[log.version] = (self.schema, self.rows)

    def _write(self, fields: Any, mode: str, option: str) -> None:
        listed = ", ".join(f"{t.sample} AS {quote(n)}" for n, t in fields)
        frame = self.table.spark.sql(f"SELECT {listed}")
        writer = frame.write.format("delta").mode(mode).option(option, "true")
        writer.save(str(self.table.folder))


OPERATIONS = [
    Model.add,
    Model.insert,
    Model.rename,
    Model.drop,
    Model.evolve,
    Model.overwrite,
    Model.create_again,
    Model.delete,
    Model.optimize,
    Model.restore,
    Model.illegal,
]


@given(draw=st.data())
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_random_operations(spark: SparkSession, table: Table, draw: st.DataObject) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    names = Names()
    model = Model(table, draw_struct(draw, names, 3), names)
    listed = ", ".join(f"{quote(n)} {t.sql}" for n, t in model.schema.fields)
    model.sql(f"CREATE TABLE {table} ({listed}) USING delta {PROPERTIES}")
    model.check()
    for operation in draw.draw(st.lists(st.sampled_from(OPERATIONS), min_size=4, max_size=8)):
        operation(model, draw)
        model.check()
