"""Copies of published metadata that say something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyiceberg.manifest import ManifestEntry, write_manifest, write_manifest_list
from pyiceberg.table import StaticTable

Json = dict[str, Any]
Entries = list[ManifestEntry]


def copy(
    location: str,
    folder: Path,
    in_json: Callable[[Json], None] = lambda _metadata: None,
    in_manifest: Callable[[Entries], Entries] = lambda entries: entries,
) -> str:
    """Writes a copy of metadata, and of the manifests of what is current, with these changes."""
    table = StaticTable.from_metadata(location)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    folder.mkdir()
    entries = [
        entry
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    output = table.io.new_output(f"file:{folder}/manifest.avro")
    with write_manifest(
        2, table.spec(), table.schema(), output, snapshot.snapshot_id, "null"
    ) as manifest_writer:
        for entry in in_manifest(entries):
            manifest_writer.existing(entry)
    listed = f"file:{folder}/manifests.avro"
    with write_manifest_list(
        2,
        table.io.new_output(listed),
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        "null",
    ) as list_writer:
        list_writer.add_manifests([manifest_writer.to_manifest_file()])
    metadata = json.loads(Path(location.removeprefix("file:")).read_text())
    for one in metadata["snapshots"]:
        if one["snapshot-id"] == snapshot.snapshot_id:
            one["manifest-list"] = listed
    in_json(metadata)
    written = folder / "v1.metadata.json"
    written.write_text(json.dumps(metadata))
    return f"file:{written}"


def column(metadata: Json, name: str) -> Json:
    """A top-level column of the current schema."""
    current = metadata["current-schema-id"]
    (schema,) = (s for s in metadata["schemas"] if s["schema-id"] == current)
    (field,) = (f for f in schema["fields"] if f["name"] == name)
    found: Json = field
    return found
