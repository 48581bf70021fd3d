"""Counts the requests to S3 of one publishing, for tables with short and long histories.

Run by `make bench`; prints a section of docs/benchmarks.md, and with --write puts it there. The
server is moto, in this process. The publisher is a process of its own, so that it starts cold.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyiceberg.table import StaticTable

from conftest import REPOSITORY, environment
from object_store import ObjectStore, Request, counts

_KINDS = ("LIST", "HEAD", "GET", "PUT", "COPY", "DELETE")

_HEADING = "## Requests to S3"

_TEXT = (
    "The publisher is a process of its own, and the server is moto. The table is made by commits "
    "that add one file each. *Cold* is the first publishing of a process, *warm* a later one. "
    "All requests of a call of `publish` are counted; no data file is opened. The commits are of "
    "another program, so Delta reads them from its log. If the publisher has made the commit "
    "itself, an append takes at most 30 requests, which a test asserts. At 1 000 commits the "
    "append is one that merges ten manifests.\n"
)


class Table:
    """A Delta table whose log is written by this program, with copies of one data file."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        """A table that has one file."""
        self.store, self.key = store, key
        self.commits = [
            json.loads(line) for line in store.text(f"{key}/_delta_log/{1:020d}.json").splitlines()
        ]
        self.version = 1
        self.live: list[dict[str, Any]] = [c["add"] for c in self.commits if "add" in c]

    def append(self) -> None:
        """Commits one more file."""
        add = self.live[0] | {"path": f"{uuid.uuid4()}.parquet"}
        self.store.s3.copy_object(
            Bucket=self.store.bucket,
            Key=f"{self.key}/{add['path']}",
            CopySource={
                "Bucket": self.store.bucket,
                "Key": f"{self.key}/{self.live[0]['path']}",
            },
        )
        self.live.append(add)
        self._commit({"add": add})

    def remove(self) -> None:
        """Commits the removal of a file from the middle of the history."""
        gone = self.live.pop(len(self.live) // 2)
        kept = {name: gone[name] for name in ("path", "partitionValues", "size")}
        remove = kept | {"deletionTimestamp": gone["modificationTime"], "dataChange": True}
        self._commit({"remove": remove})

    def _commit(self, action: dict[str, Any]) -> None:
        self.version += 1
        (info,) = (c["commitInfo"] for c in self.commits if "commitInfo" in c)
        lines = [{"commitInfo": info | {"txnId": str(uuid.uuid4())}}, action]
        self.store.s3.put_object(
            Bucket=self.store.bucket,
            Key=f"{self.key}/_delta_log/{self.version:020d}.json",
            Body="".join(f"{json.dumps(line)}\n" for line in lines).encode(),
        )


@contextmanager
def _publisher(store: ObjectStore) -> Iterator[Callable[[str, str], None]]:
    """A process that creates or publishes a table when it is asked to."""
    with subprocess.Popen(
        [
            sys.executable,
            str(REPOSITORY / "tests/scripts/publish_on_request.py"),
            json.dumps(store.hadoop_settings()),
        ],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:

        def ask(word: str, key: str) -> None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{word} s3a://{store.bucket}/{key}\n")
            process.stdin.flush()
            if process.stdout.readline() != "done\n":
                raise RuntimeError(f"the publisher has ended instead of: {word} {key}")

        yield ask


def _manifests(store: ObjectStore, key: str) -> int:
    """The number of manifests of the current snapshot."""
    number = store.text(f"{key}/metadata/version-hint.text")
    location = f"s3a://{store.bucket}/{key}/metadata/v{number}.metadata.json"
    table = StaticTable.from_metadata(location, store.pyiceberg_settings())
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return len(snapshot.manifests(table.io))


def _measured(
    store: ObjectStore, table: Table, ask: Callable[[str, str], None]
) -> Iterator[tuple[str, list[Request], int]]:
    """For each kind of publishing its requests, and the number of manifests before it."""
    for what, change in (
        ("a removal of one file, cold", table.remove),
        ("an append of one file, warm", table.append),
        ("a removal of one file, warm", table.remove),
    ):
        change()
        manifests = _manifests(store, table.key)
        with store.noted() as requests:
            ask("publish", table.key)
        yield what, requests, manifests


def _row(commits: int, what: str, requests: list[Request], manifests: int) -> str:
    kinds = counts(requests)
    log = sum("/_delta_log" in request.key for request in requests)
    cells = [what, commits, manifests, len(requests), log, *(kinds[kind] for kind in _KINDS)]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Measures the tables whose numbers of commits are given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="*", type=int, default=[10, 100, 1000])
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    arguments = parser.parse_args()
    head = ["publishing", "commits", "manifests", "requests", "of these, Delta's log", *_KINDS]
    rows = [f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
    with ObjectStore.started() as store:
        tables: dict[int, Table] = {}
        with _publisher(store) as ask:
            for commits in arguments.commits:
                ask("create", f"tables/{commits}")
                tables[commits] = table = Table(store, f"tables/{commits}")
                # The first version is published, and then each commit makes a manifest.
                ask("publish", table.key)
                while table.version < commits:
                    table.append()
                ask("publish", table.key)
                # As Delta makes one after each tenth commit.
                ask("checkpoint", table.key)
        with _publisher(store) as ask:
            for commits, table in tables.items():
                rows += [_row(commits, *one) for one in _measured(store, table, ask)]
    section = "\n".join([_HEADING, "", _TEXT, *rows, ""])
    print(section)
    if arguments.write:
        page = REPOSITORY / "docs/benchmarks.md"
        before = re.sub(rf"\n*{_HEADING}\n.*?(?=\n## |\Z)", "\n", page.read_text(), flags=re.S)
        page.write_text(f"{before.rstrip()}\n\n{section}")


if __name__ == "__main__":
    main()
