"""Clients of a REST catalog, one a thread, that append and delete rows until they are told to end.

Each knows what it was told. When it got no answer, it looks whether the table has its snapshots.
Arguments: the address of the catalog; the number of the first client; how many there are; the share
of deletes; what becomes of appends that come late, `on-top` or `refused`; a seed; the tables. It
prints `ready`, ends when its standard input is closed, and
then prints one line of JSON for each change that is in a table.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
    ValidationException,
)
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import AddSnapshotUpdate
from requests.exceptions import RequestException

# What one client can number of its own.
ROWS_PER_CLIENT = 1_000_000

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])

# After these nobody knows whether the commit was made.
UNKNOWN = (CommitStateUnknownException, ServerError, ServiceUnavailableError, RequestException)


class Client:
    """Works on tables, and remembers its rows."""

    def __init__(
        self, uri: str, number: int, refused: bool, seed: str, ended: threading.Event
    ) -> None:
        """Nothing is done yet."""
        self.number = number
        self.refused = refused
        self.some = random.Random(f"{seed} {number}")
        self.next_row = number * ROWS_PER_CLIENT
        self.rows: dict[str, list[int]] = defaultdict(list)
        self.done: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self.ended = ended
        self.catalog: Catalog = load_catalog("stress", type="rest", uri=uri)

    def work(self, tables: list[str], deletes: float) -> None:
        """One change after the other."""
        while not self.ended.is_set():
            table = self.some.choice(tables)
            mine = self.rows[table]
            if mine and self.some.random() < deletes:
                self._delete(table, mine)
            else:
                self._append(table, mine)

    def _append(self, table: str, mine: list[int]) -> None:
        ids = [self.next_row + n for n in range(self.some.randint(1, 3))]
        self.next_row += len(ids)
        rows = [{"id": n, "name": f"c{self.number}"} for n in ids]
        data = pa.Table.from_pylist(rows, schema=SCHEMA)
        self._until_made(table, lambda transaction: transaction.append(data), added=ids)
        mine.extend(ids)

    def _delete(self, table: str, mine: list[int]) -> None:
        gone = mine.pop(self.some.randrange(len(mine)))
        self._until_made(
            table, lambda transaction: transaction.delete(f"id = {gone}"), removed=[gone]
        )

    def _until_made(
        self, name: str, change: Callable[[Transaction], None], **what: list[int]
    ) -> None:
        begin = time.monotonic()
        tries = 0
        while True:
            tries += 1
            table = self._loaded(name)
            if self.refused:
                _insist(table)
            transaction = table.transaction()
            snapshots: list[int] = []
            try:
                change(transaction)
                snapshots = [
                    update.snapshot.snapshot_id
                    for update in transaction._updates
                    if isinstance(update, AddSnapshotUpdate)
                ]
                transaction.commit_transaction()
            except (CommitFailedException, ValidationException):
                self.counts["given up by pyiceberg, tried anew"] += 1
                continue
            except UNKNOWN:
                there = [self._loaded(name).snapshot_by_id(one) is not None for one in snapshots]
                if any(there) != all(there):
                    raise RuntimeError(f"{name} has a part of a commit: {snapshots}") from None
                self.counts[f"no answer, {'made' if all(there) else 'not made'}"] += 1
                if not all(there):
                    continue
            self.done.append(
                {"table": name, "snapshots": snapshots, "client": self.number}
                | {"seconds": time.monotonic() - begin, "tries": tries}
                | {"added": [], "removed": []}
                | what
            )
            return

    def _loaded(self, name: str) -> Table:
        """The table, when the server answers again."""
        while True:
            try:
                return self.catalog.load_table(name)
            except (RequestException, ServiceUnavailableError):
                time.sleep(0.2)


def _insist(table: Table) -> None:
    """Has each requirement sent twice, so that the server does not put a late append on top."""
    commit = table._do_commit

    def twice(updates: tuple[Any, ...], requirements: tuple[Any, ...]) -> None:
        commit(updates=updates, requirements=(*requirements, *requirements))

    table._do_commit = twice  # type: ignore[method-assign]


def main(uri: str, first: str, count: str, deletes: str, late: str, seed: str, *tables: str) -> int:
    """Runs the clients, and tells what they did."""
    logging.disable(logging.WARNING)
    ended = threading.Event()
    refused = late == "refused"
    clients = [Client(uri, int(first) + n, refused, seed, ended) for n in range(int(count))]
    errors: list[str] = []

    def run(client: Client) -> None:
        try:
            client.work(list(tables), float(deletes))
        except Exception as error:
            errors.append(f"client {client.number}: {type(error).__name__} {error}")

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    print("ready", flush=True)
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    for client in clients:
        for change in client.done:
            print(json.dumps(change))
    counts = sum((client.counts for client in clients), Counter[str]())
    print(json.dumps({"counts": counts, "errors": errors}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
