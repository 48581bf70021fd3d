"""What DuckDB changes in rows of Delta tables, by a REST catalog that takes delete files.

Arguments: the address of the catalog; how names of tables begin.
"""

from __future__ import annotations

import sys

from duckdb_client import attached
from steps import step

uri, prefix = sys.argv[1:]
run = attached(uri).execute


def done(what: str, table: str) -> None:
    """Ends a step."""
    step(what, table, run(f"SELECT * FROM delta.{table}").fetchall())


t, parts = f"default.{prefix}_t", f"default.{prefix}_parts"
run(f"CREATE TABLE delta.{t} (id BIGINT, name VARCHAR, d DECIMAL(9, 2))")
run(f"INSERT INTO delta.{t} SELECT range, 'n' || range, range / 4 FROM range(1, 21)")
run(f"INSERT INTO delta.{t} VALUES (21, NULL, NULL), (22, 'é''\"/%20', 0)")
done("insert", t)
run(f"UPDATE delta.{t} SET name = 'x' WHERE id IN (1, 20, 21)")
done("update", t)
run(f"DELETE FROM delta.{t} WHERE id = 2 OR name = 'n7' OR name = 'é''\"/%20'")
done("delete", t)
run(f"DELETE FROM delta.{t} WHERE id = 99")
done("delete of nothing", t)
run(
    f"MERGE INTO delta.{t} USING (SELECT * FROM (VALUES (3, 'm'), (30, 'new'), (4, NULL)) "
    "s (key, v)) s ON id = s.key WHEN MATCHED THEN UPDATE SET name = v "
    "WHEN NOT MATCHED THEN INSERT VALUES (key, v, NULL)"
)
done("merge", t)
run(f"MERGE INTO delta.{t} USING (SELECT 5 AS key) s ON id = s.key WHEN MATCHED THEN DELETE")
done("merge that deletes", t)
run("BEGIN")
run(f"INSERT INTO delta.{t} VALUES (40, 'd', NULL), (41, 'e', NULL)")
run(f"UPDATE delta.{t} SET d = 9.5 WHERE id >= 30")
run(f"DELETE FROM delta.{t} WHERE id = 41")
run("COMMIT")
done("transaction", t)
run(f"ALTER TABLE delta.{t} ADD COLUMN n INTEGER")
run(f"UPDATE delta.{t} SET n = id WHERE id % 2 = 0")
done("new column", t)
run(f"CREATE TABLE delta.{parts} (id BIGINT, p VARCHAR) PARTITIONED BY (p)")
run(f"INSERT INTO delta.{parts} VALUES (1, 'x'), (2, 'a b/%20=ü'), (3, NULL), (4, 'x'), (5, NULL)")
run(f"UPDATE delta.{parts} SET id = id + 10 WHERE id IN (1, 2, 3)")
done("update of partitions", parts)
run(f"DELETE FROM delta.{parts} WHERE p IS NULL OR id = 4")
done("delete of partitions", parts)
run(f"DELETE FROM delta.{t}")
done("delete of all", t)
