"""Writing a snapshot: Parquet files aside, the manifest last, then one rename."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from knowledge.errors import KnowledgeError
from knowledge.model.chunk import Chunk
from knowledge.model.identity import chunk_id
from knowledge.storage.snapshots import (
    CHUNK_SCHEMA,
    MANIFEST,
    Manifest,
    Mode,
    Snapshot,
    SnapshotFile,
    SnapshotSource,
    sha256_of,
)

_ROWS_PER_GROUP: Final = 2_000
_ROWS_PER_FILE: Final = 50_000


class SnapshotWriter:
    """Writes one snapshot: `add` chunks, then `finish`; leaving the block early leaves nothing."""

    def __init__(
        self,
        root: Path,
        *,
        tenant_id: str,
        project_id: str,
        collection: str,
        mode: Mode,
    ) -> None:
        self.snapshot_id = uuid.uuid4()
        self._identity = {
            "tenant_id": tenant_id,
            "project_id": project_id,
            "collection": collection,
            "mode": mode,
        }
        parent = root / tenant_id / collection
        parent.mkdir(parents=True, exist_ok=True)
        self._final = parent / str(self.snapshot_id)
        self._folder = parent / f".{self.snapshot_id}"
        self._folder.mkdir()
        self._buffer: list[dict[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None
        self._files: list[tuple[str, int]] = []
        self._counts: dict[str, int] = {}

    def __enter__(self) -> SnapshotWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._folder.exists():
            with suppress(OSError, pa.ArrowException):  # the folder goes anyway
                self._close_file()
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, KnowledgeError):
            reason = os.strerror(error.errno) if error.errno else error
            raise KnowledgeError(
                f"the snapshot could not be written ({reason}): free some space"
                f" under {self._final.parent} and publish again; nothing was announced"
            ) from error

    def add(self, source_id: str, source_version: str, chunk: Chunk) -> None:
        tenant, collection = self._identity["tenant_id"], self._identity["collection"]
        lines = chunk.lines or (None, None)
        self._buffer.append(
            {
                "chunk_id": str(chunk_id(tenant, collection, source_id, chunk.path, chunk.anchor)),
                "source_id": source_id,
                "source_version": source_version,
                "path": chunk.path,
                "anchor": chunk.anchor,
                "title": chunk.title,
                "text": chunk.text,
                "kind": chunk.kind,
                "language": chunk.language,
                "tags": list(chunk.tags),
                "metadata": json.dumps(dict(chunk.metadata), ensure_ascii=False, sort_keys=True),
                "line_start": lines[0],
                "line_end": lines[1],
                "acl": None if chunk.acl is None else list(chunk.acl),
                "updated_at": chunk.updated_at,
            }
        )
        self._counts[source_id] = self._counts.get(source_id, 0) + 1
        if len(self._buffer) >= _ROWS_PER_GROUP:
            self._flush()

    def finish(self, sources: Sequence[SnapshotSource], skipped: dict[str, int]) -> Snapshot:
        """Write the manifest, rename the folder into place and return the snapshot."""
        self._flush()
        self._close_file()
        manifest = Manifest(
            snapshot_id=self.snapshot_id,
            **self._identity,
            created_at=datetime.now(UTC),
            chunk_count=sum(self._counts.values()),
            files=tuple(
                SnapshotFile(
                    path=name,
                    sha256=sha256_of(self._folder / name).hex(),
                    size_bytes=(self._folder / name).stat().st_size,
                    rows=rows,
                )
                for name, rows in self._files
            ),
            sources=tuple(
                source.model_copy(update={"chunk_count": self._counts.get(source.source_id, 0)})
                for source in sources
            ),
            skipped=skipped,
        )
        raw = manifest.model_dump_json(by_alias=True, indent=1).encode()
        (self._folder / MANIFEST).write_bytes(raw)
        self._folder.rename(self._final)
        return Snapshot(self._final, manifest, hashlib.sha256(raw).digest())

    def _flush(self) -> None:
        if not self._buffer:
            return
        if self._writer is None:
            name = f"chunks-{len(self._files)}.parquet"
            self._files.append((name, 0))
            self._writer = pq.ParquetWriter(self._folder / name, CHUNK_SCHEMA, compression="zstd")
        self._writer.write_table(pa.Table.from_pylist(self._buffer, schema=CHUNK_SCHEMA))
        name, rows = self._files[-1]
        self._files[-1] = (name, rows + len(self._buffer))
        self._buffer = []
        if self._files[-1][1] >= _ROWS_PER_FILE:
            self._close_file()

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
