"""What DuckDB does with Delta tables by a REST catalog.

Arguments: the address of the catalog; how names of tables begin.
"""

from __future__ import annotations

import sys

import duckdb
import pytest

from duckdb_client import attached
from steps import step

uri, prefix = sys.argv[1:]
connection = attached(uri)


def done(what: str, table: str) -> None:
    """Ends a step."""
    rows = connection.execute(f"SELECT * FROM delta.{table}").fetchall()
    step(what, table, rows)


t, parts, made = (f"default.{prefix}_{kind}" for kind in ("t", "parts", "made"))
run = connection.execute
run(f"CREATE TABLE delta.{t} (id BIGINT, name VARCHAR, d DECIMAL(9, 2))")
done("create", t)
run(f"INSERT INTO delta.{t} VALUES (1, 'a', 1.25), (2, NULL, NULL)")
done("insert", t)
run(f"ALTER TABLE delta.{t} ADD COLUMN n INTEGER")
run(f"INSERT INTO delta.{t} VALUES (3, 'c', 3.5, 3)")
done("alter", t)
run("BEGIN")
run(f"INSERT INTO delta.{t} VALUES (4, 'd', NULL, 4)")
run(f"INSERT INTO delta.{t} VALUES (5, 'e', NULL, 5)")
run("COMMIT")
done("transaction", t)
run(f"CREATE TABLE delta.{parts} (id BIGINT, p VARCHAR) PARTITIONED BY (p)")
run(f"INSERT INTO delta.{parts} VALUES (1, 'x'), (2, 'a b/%20=ü'), (3, NULL), (4, 'x')")
done("partitions", parts)
run(f"CREATE TABLE delta.{made} AS SELECT range AS id, [range, NULL] AS l FROM range(5)")
done("create as select", made)
merge = f"MERGE INTO delta.{t} USING (SELECT 1 AS key) s ON id = s.key"
for statement, reason in (
    (f"UPDATE delta.{t} SET name = 'x' WHERE id = 1", "change its rows by Delta"),
    (f"{merge} WHEN MATCHED THEN UPDATE SET name = 'x'", "change its rows by Delta"),
    # DuckDB itself goes by the property of the table.
    (f"DELETE FROM delta.{t} WHERE id = 1", "copy-on-write"),
):
    with pytest.raises(duckdb.Error, match=reason):
        run(statement)
done("refused", t)
run(f"DROP TABLE delta.{made}")
assert made not in str(run("SHOW ALL TABLES").fetchall())
step("drop", t, run(f"SELECT * FROM delta.{t}").fetchall())
