"""Switches the feature on for many tables: plans, runs in parallel, can be resumed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from pyspark.sql import SparkSession

from iceberg_writer_compat import _codec, _html, _jvm, _parallel, _text
from iceberg_writer_compat._parallel import Pool
from iceberg_writer_compat.checks import failed, tables_in
from iceberg_writer_compat.exceptions import JournalError
from iceberg_writer_compat.report import Enabling, Report, Reports, TableError
from iceberg_writer_compat.tables import EnableResult, Mode, enable_iceberg_writer_compat

State = Literal["waiting", "planned", "running", "done", "failed"]
Notify: TypeAlias = Callable[["TableProgress"], None]


@dataclass(frozen=True)
class TableProgress:
    """The state of one of many tables.

    Attributes:
        table: The name or path as it was given.
        state: `waiting`, `planned`, `running`, `done` or `failed`. A later run with the same
            journal processes all tables that are not done.
        plan: How the feature can be switched on.
        result: The result of enabling, if the table is done.
        error: The error, if the table failed; the table is unchanged.
        started: When processing of the table began.
        finished: When it was done or failed.
    """

    table: str
    state: State = "waiting"
    plan: Enabling | None = None
    result: EnableResult | None = None
    error: TableError | None = None
    started: datetime | None = None
    finished: datetime | None = None

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.progress(self)


@dataclass(frozen=True)
class EnableResults(Sequence[TableProgress]):
    """The results of enabling many tables, in the order in which they were given.

    Attributes:
        tables: The state of each table.
        interrupted: Whether the run was interrupted before all tables were processed.
    """

    tables: tuple[TableProgress, ...]
    interrupted: bool = False

    @property
    def done(self) -> tuple[TableProgress, ...]:
        """The tables that have the feature on now."""
        return self._in("done")

    @property
    def failed(self) -> tuple[TableProgress, ...]:
        """The tables that are unchanged because of an error."""
        return self._in("failed")

    @property
    def left(self) -> tuple[TableProgress, ...]:
        """The tables that were not processed."""
        return tuple(one for one in self.tables if one.state not in ("done", "failed"))

    @property
    def succeeded(self) -> bool:
        """Whether every table has the feature on now."""
        return len(self.done) == len(self)

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.enabled(self)

    def _in(self, state: State) -> tuple[TableProgress, ...]:
        return tuple(one for one in self.tables if one.state == state)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> EnableResults:
        """Reads the result of `to_dict`."""
        _codec.require_format(value)
        return _codec.decode(cls, value, "results")

    def to_dict(self) -> dict[str, Any]:
        """The results as dicts and lists, which `from_dict` reads."""
        counts = {"done": len(self.done), "failed": len(self.failed), "left": len(self.left)}
        return {
            "format": _codec.FORMAT,
            "verdict": self.verdict,
            "counts": counts,
            **_codec.encode(self),
        }

    def to_json(self) -> str:
        """The results as JSON."""
        return _codec.dumps(self.to_dict())

    def to_html(self) -> str:
        """The results as an HTML page without external resources."""
        return _html.results(self)

    def __repr__(self) -> str:
        """The verdict; `str` has everything."""
        return f"<{type(self).__name__} {self.verdict}>"

    def _repr_html_(self) -> str:
        return _html.text(str(self))

    def __str__(self) -> str:
        """The results as text."""
        return _text.results(self)

    def __len__(self) -> int:
        """The number of tables."""
        return len(self.tables)

    def __iter__(self) -> Iterator[TableProgress]:
        """The tables in order."""
        return iter(self.tables)

    @overload
    def __getitem__(self, index: int) -> TableProgress: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TableProgress]: ...
    def __getitem__(self, index: int | slice) -> TableProgress | Sequence[TableProgress]:
        """The table at an index, or several of them."""
        return self.tables[index]


@overload
def enable_all(
    spark: SparkSession,
    tables: Sequence[str | os.PathLike[str]] = (),
    *,
    schema: str | None = None,
    catalog: str | None = None,
    mode: Mode = "auto",
    rewrite: bool = False,
    drop: Collection[str] = (),
    contract: str | None = None,
    parallelism: int = _parallel.DEFAULT,
    journal: str | os.PathLike[str] | None = None,
    dry_run: Literal[False] = False,
    notify: Notify | None = None,
) -> EnableResults: ...
@overload
def enable_all(
    spark: SparkSession,
    tables: Sequence[str | os.PathLike[str]] = (),
    *,
    schema: str | None = None,
    catalog: str | None = None,
    mode: Mode = "auto",
    rewrite: bool = False,
    drop: Collection[str] = (),
    contract: str | None = None,
    parallelism: int = _parallel.DEFAULT,
    journal: str | os.PathLike[str] | None = None,
    dry_run: Literal[True],
    notify: Notify | None = None,
) -> Reports: ...
def enable_all(
    spark: SparkSession,
    tables: Sequence[str | os.PathLike[str]] = (),
    *,
    schema: str | None = None,
    catalog: str | None = None,
    mode: Mode = "auto",
    rewrite: bool = False,
    drop: Collection[str] = (),
    contract: str | None = None,
    parallelism: int = _parallel.DEFAULT,
    journal: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    notify: Notify | None = None,
) -> EnableResults | Reports:
    """Switches `icebergWriterCompatV1` on for many tables: plans all of them, then enables them.

    A table that fails is unchanged, and the others are still processed. After Ctrl-C no further
    table is started; the result contains the state of each table.

    Args:
        spark: A session that has the extension.
        tables: Names and paths.
        schema: In addition, all Delta tables of this schema.
        catalog: In addition, all Delta tables of this catalog.
        mode: As in `enable_iceberg_writer_compat`.
        rewrite: Whether data files may be rewritten, as in `enable_iceberg_writer_compat`.
        drop: The blockers to remove, as in `enable_iceberg_writer_compat`.
        contract: The feature to switch on, as in `enable_iceberg_writer_compat`.
        parallelism: How many tables are processed at a time.
        journal: A file that records the progress of each table. A run with the journal of an
            earlier run skips tables that are done.
        dry_run: Return the plans, and write nothing.
        notify: Called on several threads when a table is planned, done, or has failed; and for
            each table that was done in an earlier run.
    """
    if isinstance(tables, (str, bytes, os.PathLike)):
        raise TypeError("Pass several tables as a list of names or paths.")
    _parallel.require(parallelism)
    _jvm.require(spark)
    names = [_jvm.table_name(table) for table in tables]
    names += tables_in(spark, schema) if schema is not None else []
    names += tables_in(spark, catalog=catalog) if catalog is not None else []
    names = list(dict.fromkeys(names))
    how = {"mode": mode, "rewrite": rewrite, "drop": drop, "contract": contract}
    told = notify or (lambda _table: None)
    if dry_run:
        plan: Callable[..., Any] = partial(enable_iceberg_writer_compat, spark, **how, dry_run=True)
        return _plans(spark, names, plan, parallelism, told)
    return enable_each(spark, names, how, parallelism, journal, told, "python")


def enable_each(
    spark: SparkSession,
    names: Sequence[str],
    how: Mapping[str, Any],
    parallelism: int,
    journal: str | os.PathLike[str] | None,
    told: Notify,
    door: _jvm.Door,
) -> EnableResults:
    """Enables tables with the arguments `how`; errors are in the language of the door."""
    enable: Callable[..., Any] = partial(enable_iceberg_writer_compat, spark, **how)
    with nullcontext() if journal is None else closing(_Journal(Path(journal))) as log:
        return _Run(spark, names, enable, parallelism, log, told, door).run()


def _plans(
    spark: SparkSession,
    names: Sequence[str],
    plan: Callable[[str], Report],
    parallelism: int,
    told: Notify,
) -> Reports:
    def entry(name: str) -> Report | TableError:
        try:
            return plan(name)
        except Exception as error:
            return failed(name, error)
        finally:
            told(TableProgress(name, "planned"))

    with Pool(spark, parallelism) as pool:
        return Reports(tuple(pool.map(entry, names)), spark)


class _Journal:
    """A file with one line of JSON for each step of a table; the last line of a table counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise JournalError(f"The journal {path} cannot be used: {error.strerror}.") from error
        try:
            self._claim()
            self.tables = {table.table: table for table in self._read()}
        except BaseException:
            self.close()
            raise

    def write(self, table: TableProgress) -> None:
        """Records a step; returns after the line is on disk."""
        line = (
            json.dumps({"format": _codec.FORMAT, **_codec.encode(table)}, ensure_ascii=False) + "\n"
        )
        with self._lock:
            os.write(self._file, line.encode())
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)

    # Two runs would process the same tables, and could truncate each other's lines.
    def _claim(self) -> None:
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalError(f"Another run is writing the journal {self._path}.") from None

    def _read(self) -> Iterator[TableProgress]:
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        # The last line is incomplete if the process or machine died while writing it.
        os.truncate(self._file, whole)
        for number, line in enumerate(content[:whole].split(b"\n")[:-1], 1):
            try:
                value = json.loads(line)
                _codec.require_format(value)
                yield _codec.decode(TableProgress, value, "step")
            except ValueError as error:
                raise JournalError(
                    f"Line {number} of the journal {self._path} is not a step of a table: {error}\n"
                    "Use another journal; tables that have the feature already are skipped quickly."
                ) from error


class _Run:
    """One run over many tables."""

    def __init__(
        self,
        spark: SparkSession,
        names: Sequence[str],
        enable: Callable[..., Any],
        parallelism: int,
        journal: _Journal | None,
        told: Notify,
        door: _jvm.Door,
    ) -> None:
        self._spark = spark
        self._door = door
        self._enable = enable
        self._parallelism = parallelism
        self._journal = journal
        self._told = told
        known = journal.tables if journal else {}
        # A table that was running when a run ended is unchanged or has the feature; try it again.
        self._tables = {name: known.get(name, TableProgress(name)) for name in names}

    def run(self) -> EnableResults:
        interrupted = False
        for table in self._tables.values():
            if table.state == "done":
                self._told(table)
        try:
            for step in (self._plan, self._run):
                with Pool(self._spark, self._parallelism) as pool:
                    pool.map(step, [n for n, t in self._tables.items() if t.state != "done"])
        except KeyboardInterrupt:
            interrupted = True
        return EnableResults(tuple(self._tables.values()), interrupted)

    def _plan(self, name: str) -> None:
        if self._tables[name].state == "planned":
            return
        table = TableProgress(name, started=_now())
        try:
            plan: Report = self._enable(name, dry_run=True)
        except Exception as error:
            self._set(self._failed(table, error))
        else:
            self._set(replace(table, state="planned", plan=plan.facts.enabling, started=None))

    def _run(self, name: str) -> None:
        planned = self._tables[name]
        if planned.state == "failed":
            return
        table = replace(planned, state="running", started=_now())
        self._set(table)
        try:
            result: EnableResult = self._enable(name)
        except Exception as error:
            self._set(self._failed(table, error))
        else:
            self._set(replace(table, state="done", result=result, finished=_now()))

    def _failed(self, table: TableProgress, error: Exception) -> TableProgress:
        told = failed(table.table, error, self._door)
        return replace(table, state="failed", error=told, result=None, finished=_now())

    def _set(self, table: TableProgress) -> None:
        if self._journal:
            self._journal.write(table)
        self._tables[table.table] = table
        if table.state != "running":
            self._told(table)


def _now() -> datetime:
    return datetime.now(timezone.utc)
