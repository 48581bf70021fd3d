"""Commits versions of the metadata in a folder, one after the other, as publishers do.

Without a Spark session: only the write of the metadata file decides the race.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway

from iceberg_writer_compat import _jars
from sessions import store_jars

root, settings, rounds = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])

line = _jars.spark_line()
jars = [_jars.own_jar(line), *_jars.iceberg_jars(line), *store_jars()]
os.environ["PYSPARK_SUBMIT_ARGS"] = (
    f"--driver-memory 512m --driver-class-path {os.pathsep.join(map(str, jars))} pyspark-shell"
)
gateway = launch_gateway()
jvm = gateway.jvm
iceberg = jvm.org.apache.iceberg
conf = jvm.org.apache.hadoop.conf.Configuration()
for key, value in settings.items():
    conf.set(key, value)
folder = jvm.org.apache.hadoop.fs.Path(root)
nothing = jvm.scala.Option.empty()
targets = jvm.org.icebergwritercompat.iceberg.target.PublishTargets


def commit() -> int:
    """Commits the next version and returns it."""
    operations = targets.of("raced", folder, conf, nothing, nothing, nothing)
    base = operations.current()
    last = base.currentSnapshot()
    version = int(base.property("delta-version", "")) + 1
    snapshot = {
        "sequence-number": base.nextSequenceNumber(),
        "snapshot-id": random.getrandbits(62),
        "parent-snapshot-id": last.snapshotId(),
        "timestamp-ms": max(int(time.time() * 1000), base.lastUpdatedMillis()),
        "summary": {"operation": "append", "delta-version": str(version)},
        "manifest-list": last.manifestListLocation(),
        "schema-id": base.currentSchemaId(),
    }
    changed = (
        iceberg.TableMetadata.buildFrom(base)
        .setBranchSnapshot(iceberg.SnapshotParser.fromJson(json.dumps(snapshot)), "main")
        .setProperties({"delta-version": str(version)})
        .build()
    )
    operations.commit(base, changed)
    return version


print("ready", flush=True)
sys.stdin.readline()
committed: list[int] = []
lost = 0
while len(committed) < rounds:
    try:
        committed.append(commit())
    except Py4JJavaError as error:
        name = "org.apache.iceberg.exceptions.CommitFailedException"
        if not is_instance_of(gateway, error.java_exception, name):
            raise
        lost += 1
print(json.dumps({"committed": committed, "lost": lost}))
gateway.shutdown()
