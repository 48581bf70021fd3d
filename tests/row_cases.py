"""Tables whose rows are easily lost on the way to another reader.

Each line of a script is a statement, where `t` in braces is the table. `ROWS (…), (…)` inserts
these rows, `EACH (…), (…)` does so in a file for each, so that filters can pass over files, and
`PUBLISH` publishes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ENABLED = "'delta.enableIcebergWriterCompatV1' = 'true'"


@dataclass(frozen=True)
class Case:
    """A table, what is done to it, and how many rows there are in the end."""

    name: str
    columns: str
    script: str
    rows: int
    more: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    unfiltered: frozenset[str] = frozenset()
    """Columns by which pyiceberg finds other rows than it shows, by faults of its own."""
    unread: bool = False
    """Whether pyiceberg shows other values than are in the files, by faults of its own."""

    @property
    def statements(self) -> list[str]:
        """The lines of the script."""
        return [line.strip() for line in self.script.splitlines() if line.strip()]


TEXTS = (
    "''", "' '", "'a/b'", "'%'", "'%2F'", "'a%00b'", "'a\\u0000b'", "'\\u0000'", "'a\\nb'", "'\"'",
    "'a:b=c?d#e'", "'*[{}]'", "'..'", "'.'", "'null'", "'NULL'", "'007'", "'1e5'", "'2026-01-01'",
    "'a '", "'\U0001f600'", "'\U0010ffff'", "'\uffff'", "'\ud7ff'", "'e\u0301'", "'\u00e9'", "'A'",
    "repeat('x', 90)", "'\\\\'", "'a''b'", "'__HIVE_DEFAULT_PARTITION__x'", "null",
)  # fmt: skip

# Delta cuts off what is longer than 32 characters, Iceberg's writers what is longer than 16.
EDGE = "x" * 31
LONG_TEXTS = (
    f"'{EDGE}\U0001f600'", f"'{EDGE}\U0001f600\U0001f600'", f"'{EDGE}x\U0010ffff\U0010ffff'",
    f"'{EDGE}\U0010ffff\U0010ffff\U0010ffff'", "repeat('\U0010ffff', 33)", "repeat('\uffff', 50)",
    "repeat('\ud7ff', 40)", "repeat('\U0001f600', 40)", "repeat('z', 5000)", "repeat('é', 17)",
    "concat(repeat('a', 15), '\U0001f600', repeat('b', 40))", "repeat('\\u0000', 40)",
    "concat(repeat('\U0010ffff', 31), 'a', 'b')", "concat(repeat('\ud7ff', 15), '\ue000', 'x')",
)  # fmt: skip

# Where clocks go forward, go back, and where they were set by the sun.
INSTANTS = (
    "TIMESTAMP'2026-03-08 02:30:00'", "TIMESTAMP'2026-11-01 01:30:00'",
    "TIMESTAMP'2026-11-01 06:30:00Z'", "TIMESTAMP'1883-11-18 12:03:58'",
    "TIMESTAMP'1847-12-01 00:01:15Z'", "TIMESTAMP'0001-01-01 00:00:00Z'",
    "TIMESTAMP'9999-12-31 23:59:59.999999Z'", "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
    "TIMESTAMP'1582-10-10 00:00:00Z'", "TIMESTAMP'-0044-03-15 12:00:00.000001Z'", "null",
)  # fmt: skip
LOCALS = tuple(t.replace("Z'", "'").replace("TIMESTAMP'", "TIMESTAMP_NTZ'") for t in INSTANTS)
DAYS = (
    "DATE'0001-01-01'", "DATE'-0044-03-15'", "DATE'1582-10-10'", "DATE'1582-10-04'",
    "DATE'9999-12-31'", "DATE'+12026-02-28'", "DATE'1969-12-31'", "DATE'1970-01-01'", "null",
)  # fmt: skip
DOUBLES = (
    "0.0D", "-0.0D", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)",
    "CAST('-Infinity' AS DOUBLE)", "4.9E-324D", "-1.7976931348623157E308D", "0.1D", "1.0D", "null",
)  # fmt: skip
FLOATS = tuple(
    f"CAST({value} AS FLOAT)"
    for value in ("0.0", "-0.0", "0.1", "1.5E38", "-1.4E-45", "16777217", "null")
)
INTS = ("2147483647", "-2147483648", "0", "-1", "null")
LONGS = ("9223372036854775807", "-9223372036854775808", "9007199254740993", "0", "null")
LARGE = ("9" * 38, "-" + "9" * 38, "0", "1", "-1", "9007199254740993", "null")
FRACTIONS = tuple(
    f"CAST({value} AS DECIMAL(38, 38))"
    for value in (f"'0.{'9' * 38}'", f"'-0.{'9' * 38}'", "0", f"'0.{'0' * 37}1'", "null")
)
BYTES = ("X''", "X'FF'", f"X'{'FF' * 40}'", "X'00'", "null")

NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}
LEGACY = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
}
BY_P = "PARTITIONED BY (p)"


def listed(values: tuple[str, ...]) -> str:
    """Rows of a number and a value."""
    return ", ".join(f"({number}, {value})" for number, value in enumerate(values))


def of_type(
    name: str,
    kind: str,
    values: tuple[str, ...],
    conf: dict[str, str] | None = None,
    unfiltered: frozenset[str] = frozenset(),
    partitioned: bool = True,
) -> list[Case]:
    """Values of a type in a file for each, and as partitions of which some rows were deleted."""
    columns, conf = f"i INT, p {kind}", conf or {}
    plain = Case(name, columns, f"EACH {listed(values)}", len(values), "", conf)
    script = (
        f"ROWS {listed(values)}\nPUBLISH\nROWS {listed(values[:1])}\nDELETE FROM {{t}} WHERE i = 1"
    )
    as_partitions = Case(
        f"{name}-as-partitions", columns, script, len(values), BY_P, conf, unfiltered
    )
    return [plain, as_partitions] if partitioned else [plain]


def nested(depth: int) -> tuple[str, str]:
    """A type of structs, lists and maps in each other, and a value with nulls at each depth."""
    kind, value = "INT", "7"
    for level in range(depth):
        kind, value = (
            (
                f"STRUCT<f{level}: {kind}, x: STRING>",
                f"named_struct('f{level}', {value}, 'x', null)",
            ),
            (f"ARRAY<{kind}>", f"array({value}, null)"),
            (f"MAP<STRING, {kind}>", f"map('k', {value}, '', null)"),
        )[level % 3]
    return kind, value


DEEP, DEEP_VALUE = nested(9)

VALUES = [
    *of_type("texts", "STRING", TEXTS),
    *of_type("long-texts", "STRING", LONG_TEXTS),
    *of_type("instants", "TIMESTAMP", INSTANTS, NEW_YORK),
    *of_type("locals", "TIMESTAMP_NTZ", LOCALS, NEW_YORK),
    *of_type("days", "DATE", DAYS),
    # pyiceberg cuts doubles of partitions to 32 bits.
    *of_type("doubles", "DOUBLE", DOUBLES, unfiltered=frozenset({"p"})),
    *of_type("floats", "FLOAT", FLOATS),
    *of_type("ints", "INT", INTS),
    *of_type("longs", "BIGINT", LONGS),
    *of_type("booleans", "BOOLEAN", ("true", "false", "null")),
    *of_type("decimals-of-38-digits", "DECIMAL(38, 0)", LARGE, partitioned=False),
    *of_type("decimals-of-38-places", "DECIMAL(38, 38)", FRACTIONS, partitioned=False),
    *of_type("bytes", "BINARY", BYTES, partitioned=False),
    Case(
        "decimals",
        "i INT, p DECIMAL(1, 1), q DECIMAL(18, 18), r DECIMAL(19, 0)",
        "EACH (1, 0.9, 0.999999999999999999, 9999999999999999999),"
        " (2, -0.9, -0.000000000000000001, -1), (3, null, null, null)",
        3,
    ),
    Case(
        "old-days",
        "i INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, a ARRAY<TIMESTAMP>",
        "EACH (1, DATE'1200-02-29', TIMESTAMP'1200-02-29 01:02:03.000004Z',"
        " TIMESTAMP_NTZ'1200-03-01', array(TIMESTAMP'1000-01-01')),"
        " (2, DATE'1582-10-10', TIMESTAMP'1850-01-01', TIMESTAMP_NTZ'1582-10-10', null)",
        2,
        conf=LEGACY | NEW_YORK,
    ),
    Case(
        "old-days-as-partitions",
        "i INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ",
        "ROWS (1, DATE'1200-02-29', TIMESTAMP'1200-02-29 01:02:03.000004Z',"
        " TIMESTAMP_NTZ'1200-03-01'),"
        " (2, DATE'1500-10-10', TIMESTAMP'1850-01-01', TIMESTAMP_NTZ'1582-10-04')",
        2,
        "PARTITIONED BY (d, t, n)",
        LEGACY | NEW_YORK,
    ),
    Case(
        "null-structs",
        "i INT, s STRUCT<x: INT, y: STRUCT<z: STRING>>, m MAP<STRING, STRUCT<x: INT>>",
        "EACH (1, null, map()), (2, named_struct('x', null, 'y', null), map()),"
        " (3, named_struct('x', 1, 'y', named_struct('z', '')),"
        " map('', null, 'k', named_struct('x', null)))",
        3,
    ),
    Case(
        "empty-lists",
        "i INT, a ARRAY<STRUCT<x: INT>>, b ARRAY<ARRAY<STRING>>",
        "EACH (1, array(), array(array())), (2, array(null, named_struct('x', null)), array()),"
        " (3, array(named_struct('x', 1)), array(array('', null)))",
        3,
    ),
    # pyiceberg shows a list or map that is null as an empty one.
    Case(
        "null-lists",
        "i INT, a ARRAY<STRUCT<x: INT>>, b ARRAY<ARRAY<STRING>>, m MAP<STRING, MAP<STRING, INT>>",
        "EACH (1, null, array(null), map('k', null)), (2, array(null), null, null),"
        " (3, array(), array(array(), null), map('k', map()))",
        3,
        unread=True,
    ),
    # A map below a list below a map is null to pyiceberg.
    Case("deep", f"i INT, d {DEEP}", f"EACH (1, {DEEP_VALUE}), (2, null)", 2, unread=True),
    Case(
        "char-and-varchar",
        "i INT, c CHAR(5), v VARCHAR(3)",
        "ROWS (1, 'ab', 'ab'), (2, '', ''), (3, null, null)",
        3,
        "PARTITIONED BY (c)",
    ),
]

NAMES = [
    Case(
        "names",
        "`a.b` INT, `e\u0301` INT, `\u00e9` INT, `x y` STRING, `%20` INT, `a/b` INT, `1` INT,"
        " `s` STRUCT<`t.u`: INT, `t`: STRUCT<v: INT>>",
        "EACH (1, 2, 3, 'x', 5, 6, 7, named_struct('t.u', 1, 't', named_struct('v', 2))),"
        " (10, 20, 30, null, 50, 60, 70, null)",
        2,
    ),
    Case(
        "names-of-partitions",
        "`a.b` INT, `e\u0301` INT, `x y` STRING, `%20` STRING, i INT",
        "ROWS (1, 2, 'x', 'a%b', 0), (10, 20, null, '\u00e9', 1)",
        2,
        "PARTITIONED BY (`a.b`, `e\u0301`, `x y`, `%20`)",
    ),
]

CHANGES = [
    Case(
        "names-that-change-hands",
        "i INT, p STRING, q INT",
        """
        EACH (1, 'a', 1), (2, 'b', 2)
        PUBLISH
        ALTER TABLE {t} DROP COLUMN q
        ALTER TABLE {t} ADD COLUMN q INT FIRST
        INSERT INTO {t} (i, p, q) VALUES (3, 'c', 1), (4, 'a', null)
        PUBLISH
        ALTER TABLE {t} RENAME COLUMN p TO q2
        ALTER TABLE {t} RENAME COLUMN i TO p
        ALTER TABLE {t} RENAME COLUMN q2 TO i
        INSERT INTO {t} (q, p, i) VALUES (9, 5, 'e')
        """,
        5,
    ),
    Case(
        "widened",
        "i INT, f FLOAT, m DECIMAL(9, 2), s STRUCT<x: INT, y: ARRAY<FLOAT>>",
        """
        EACH (2147483647, CAST(0.1 AS FLOAT), 9999999.99, named_struct('x', -2147483648, 'y', array())), (-2147483648, CAST(-0.0 AS FLOAT), -0.01, null)
        PUBLISH
        ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')
        ALTER TABLE {t} ALTER COLUMN i TYPE BIGINT
        ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE
        ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(38, 2)
        ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT
        ROWS (2147483648, 0.1D, 999999999999999999999999999999999999.99, named_struct('x', 2147483648L, 'y', array()))
        """,  # noqa: E501
        3,
        # pyiceberg compares decimals as wide as in the oldest files.
        unfiltered=frozenset({"m"}),
    ),
    Case(
        "widened-partitions",
        "i INT, p INT",
        """
        ROWS (1, 2147483647), (2, -1), (3, null)
        PUBLISH
        ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')
        ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT
        ROWS (4, 2147483648), (5, -1)
        PUBLISH
        DELETE FROM {t} WHERE i = 1
        """,
        4,
        BY_P,
    ),
    Case(
        "replaced-and-restored",
        "i INT, p STRING, q INT",
        f"""
        EACH (1, 'a', 1), (2, null, 2)
        PUBLISH
        CREATE OR REPLACE TABLE {{t}} (p STRING, q STRING, i BIGINT) USING delta PARTITIONED BY (p) TBLPROPERTIES ({ENABLED})
        ROWS ('a', 'x', 1), (null, null, 4)
        PUBLISH
        RESTORE {{t}} TO VERSION AS OF 1
        """,  # noqa: E501
        2,
        BY_P,
    ),
    Case(
        "restored",
        "i INT, p STRING",
        """
        EACH (1, 'a'), (2, 'b')
        PUBLISH
        ALTER TABLE {t} ADD COLUMN c INT
        ROWS (3, 'c', 3)
        PUBLISH
        ALTER TABLE {t} DROP COLUMN p
        DELETE FROM {t} WHERE i = 1
        PUBLISH
        RESTORE {t} TO VERSION AS OF 1
        PUBLISH
        RESTORE {t} TO VERSION AS OF 3
        """,
        3,
    ),
    Case(
        "merged-with-evolution",
        "i INT, p STRING, s STRUCT<x: INT>",
        """
        EACH (1, 'a', named_struct('x', 1)), (2, null, null)
        PUBLISH
        MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 2 AS i, 'z' AS p, named_struct('x', 5, 'y', 6) AS s, DATE'2026-01-01' AS late UNION ALL SELECT 3, null, null, null) u ON t.i = u.i WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        """,  # noqa: E501
        3,
        BY_P,
    ),
    Case(
        "partitions-overwritten",
        "i INT, p STRING",
        """
        ROWS (1, 'a'), (2, 'b'), (3, null)
        PUBLISH
        INSERT OVERWRITE {t} VALUES (4, 'b'), (5, null)
        PUBLISH
        INSERT OVERWRITE {t} PARTITION (p = 'a') VALUES (6)
        """,
        3,
        BY_P,
        {"spark.sql.sources.partitionOverwriteMode": "dynamic"},
    ),
    Case(
        "rows-replaced",
        "i INT, p STRING",
        """
        ROWS (1, 'a'), (2, 'b'), (3, null)
        PUBLISH
        INSERT INTO {t} REPLACE WHERE p IS NULL VALUES (9, null)
        INSERT INTO {t} REPLACE WHERE i = 1 VALUES (1, 'zz')
        """,
        3,
        BY_P,
    ),
    Case(
        "cloned",
        "i INT, p STRING",
        """
        ROWS (1, 'a b%'), (2, null)
        CREATE OR REPLACE TABLE {t}_c SHALLOW CLONE {t}
        INSERT INTO {t}_c VALUES (3, 'x')
        DELETE FROM {t}_c WHERE i = 2
        DELETE FROM {t}
        CREATE OR REPLACE TABLE {t} SHALLOW CLONE {t}_c
        ROWS (7, 'late')
        """,
        3,
        BY_P,
    ),
    Case(
        "files-rewritten",
        "i INT, p STRING",
        """
        EACH (0, 'v0'), (1, 'v1'), (2, 'v2'), (3, 'v3'), (4, 'v4'), (5, 'v5')
        PUBLISH
        OPTIMIZE {t}
        PUBLISH
        UPDATE {t} SET p = null WHERE i = 3
        OPTIMIZE {t} ZORDER BY (p)
        DELETE FROM {t} WHERE i > 4
        REORG TABLE {t} APPLY (PURGE)
        """,
        5,
    ),
    Case(
        "clustered",
        "i INT, p STRING, q BIGINT",
        """
        EACH (1, 'a', 9), (2, null, null)
        PUBLISH
        OPTIMIZE {t}
        ALTER TABLE {t} CLUSTER BY (q)
        ROWS (3, 'c', 3)
        OPTIMIZE {t} FULL
        ALTER TABLE {t} CLUSTER BY NONE
        ROWS (4, 'd', 4)
        """,
        4,
        "CLUSTER BY (i, p)",
    ),
    Case(
        "few-statistics",
        "i INT, p STRING, s STRUCT<x: INT, y: INT>",
        "EACH (1, 'a', named_struct('x', 1, 'y', 2)), (2, 'b', null)",
        2,
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 's.y,p')",
    ),
    Case(
        "no-statistics",
        "i INT, p STRING",
        "EACH (1, 'a'), (2, null)",
        2,
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
    ),
    Case(
        "emptied-and-filled",
        "p BOOLEAN, q INT, r STRING, i INT",
        """
        ROWS (true, 1, 'x', 1), (null, null, null, 2), (false, -1, '', 3)
        PUBLISH
        TRUNCATE TABLE {t}
        ROWS (true, 1, 'x', 1), (null, null, null, 2)
        """,
        2,
        "PARTITIONED BY (r, p, q)",
    ),
    Case(
        "no-rows",
        "i INT, p STRING",
        """
        INSERT INTO {t} SELECT 1, 'a' WHERE false
        ROWS (1, 'a')
        DELETE FROM {t}
        """,
        0,
        BY_P,
    ),
    Case(
        "columns-moved",
        "i INT, s STRUCT<x: INT, y: STRING>, p STRING",
        """
        EACH (1, named_struct('x', 1, 'y', 'a'), 'a')
        ALTER TABLE {t} ALTER COLUMN s AFTER p
        ALTER TABLE {t} ALTER COLUMN s.y FIRST
        ALTER TABLE {t} ADD COLUMN s.w INT FIRST
        ROWS (2, 'b', named_struct('w', 9, 'y', 'b', 'x', 2))
        """,
        2,
    ),
    Case(
        "published-by-itself",
        "i INT, p STRING",
        """
        ROWS (1, 'a')
        INSERT OVERWRITE {t} VALUES (2, 'b'), (3, null)
        UPDATE {t} SET p = 'c' WHERE p IS NULL
        MERGE INTO {t} USING (SELECT 2 AS i) u ON {t}.i = u.i WHEN MATCHED THEN DELETE
        """,
        1,
        "PARTITIONED BY (p) TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')",
    ),
]

CASES = [*VALUES, *NAMES, *CHANGES]
