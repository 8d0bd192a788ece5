"""Chunk snapshots: Parquet files and a manifest with counts and checksums.

A snapshot is written aside and renamed, and never changed afterwards. The manifest
(``manifest.json``, format version 1)::

    {"formatVersion": 1, "snapshotId": "…", "tenantId": "t", "projectId": "p", "collection": "docs",
     "mode": "full" | "delta", "createdAt": "…", "chunkCount": 2,
     "files": [{"path": "chunks-0.parquet", "sha256": "…", "sizeBytes": 1, "rows": 2}],
     "sources": [{"sourceId": "s", "sourceVersion": "…", "chunkCount": 2,
                  "paths": ["a.md"], "deletedPaths": ["b.md"]}],
     "skipped": {"binary": 1}}

``full`` replaces everything a source has in the collection. ``delta`` replaces every chunk of
a listed path, removes the deleted paths and leaves the rest.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from knowledge.errors import InvalidSnapshot
from knowledge.model.identity import chunk_id
from knowledge.storage.snapshot_columns import require_storable

MANIFEST: Final = "manifest.json"
MAX_MANIFEST_BYTES: Final = 64_000_000

CHUNK_SCHEMA: Final = pa.schema(
    [
        ("chunk_id", pa.string()),
        ("source_id", pa.string()),
        ("source_version", pa.string()),
        ("path", pa.string()),
        ("anchor", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("kind", pa.string()),
        ("language", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("metadata", pa.string()),
        ("line_start", pa.int32()),
        ("line_end", pa.int32()),
        ("acl", pa.list_(pa.string())),
        ("updated_at", pa.timestamp("us", tz="UTC")),
    ]
)

Mode = Literal["full", "delta"]


class _Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class SnapshotFile(_Wire):
    path: str = Field(pattern=r"^[A-Za-z0-9_-]+\.parquet$")
    sha256: str
    size_bytes: int
    rows: int


class SnapshotSource(_Wire):
    source_id: str = Field(min_length=1, max_length=512)
    source_version: str = Field(min_length=1, max_length=512)
    chunk_count: int
    paths: tuple[str, ...] = ()
    deleted_paths: tuple[str, ...] = ()


class Manifest(_Wire):
    format_version: Literal[1] = 1
    snapshot_id: uuid.UUID
    tenant_id: str
    project_id: str
    collection: str
    mode: Mode
    created_at: datetime
    chunk_count: int
    files: tuple[SnapshotFile, ...]
    sources: tuple[SnapshotSource, ...] = Field(min_length=1)
    skipped: dict[str, int] = Field(default_factory=dict)


class Snapshot:
    """A snapshot on disk: ``manifest`` and the folder its files lie in."""

    def __init__(self, folder: Path, manifest: Manifest, manifest_sha256: bytes) -> None:
        self.folder = folder
        self.manifest = manifest
        self.manifest_sha256 = manifest_sha256

    @property
    def manifest_path(self) -> Path:
        return self.folder / MANIFEST

    @property
    def parquet_files(self) -> list[Path]:
        return [self.folder / file.path for file in self.manifest.files]

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows in order, as dicts keyed by the names of `CHUNK_SCHEMA`."""
        for path in self.parquet_files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=None if columns is None else list(columns)):
                    yield from batch.to_pylist()

    def discard(self) -> None:
        """Remove a snapshot that was never announced."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def verify(self) -> None:
        """Check sizes, checksums, schema, counts and ids. Raises `InvalidSnapshot`."""
        for file in self.manifest.files:
            self._verify_file(file)
        self._verify_counts()

    def _verify_file(self, file: SnapshotFile) -> None:
        path = self.folder / file.path
        if path.is_symlink() or not path.is_file():
            raise InvalidSnapshot(f"{path} cannot be read: it must be a file, not a link")
        try:
            found = sha256_of(path)
            schema = pq.read_schema(path) if found.hex() == file.sha256 else None
        except (OSError, pa.ArrowException) as error:
            raise InvalidSnapshot(f"{path} cannot be read: {error}") from error
        if schema is None:
            raise InvalidSnapshot(
                f"{path} does not have the checksum its manifest names: publish it again"
            )
        if not schema.equals(CHUNK_SCHEMA, check_metadata=False):
            raise InvalidSnapshot(f"{path} does not have the columns of a chunk snapshot")
        require_storable(path)

    def _verify_counts(self) -> None:
        manifest = self.manifest
        counted = {source.source_id: 0 for source in manifest.sources}
        listed = {source.source_id: set(source.paths) for source in manifest.sources}
        for row in self.rows(["chunk_id", "source_id", "path", "anchor"]):
            source_id = row["source_id"]
            if source_id not in counted:
                raise InvalidSnapshot(f"a chunk names source {source_id!r}, the manifest does not")
            counted[source_id] += 1
            if manifest.mode == "delta" and row["path"] not in listed[source_id]:
                raise InvalidSnapshot(
                    f"a chunk of {row['path']!r} is in the delta, its path is not"
                )
            expected = chunk_id(
                manifest.tenant_id,
                manifest.collection,
                source_id,
                row["path"],
                row["anchor"],
            )
            if row["chunk_id"] != str(expected):
                raise InvalidSnapshot(
                    f"chunk {row['chunk_id']} of {row['path']!r} has the id of another place:"
                    f" expected {expected}"
                )
        for source in manifest.sources:
            if counted[source.source_id] != source.chunk_count:
                raise InvalidSnapshot(
                    f"source {source.source_id!r} has {counted[source.source_id]} chunks,"
                    f" its manifest says {source.chunk_count}"
                )
        if sum(counted.values()) != manifest.chunk_count:
            raise InvalidSnapshot(
                f"the snapshot has {sum(counted.values())} chunks,"
                f" its manifest says {manifest.chunk_count}"
            )


def read_snapshot(manifest_path: Path) -> Snapshot:
    """Read a manifest; the files are not touched. Raises `InvalidSnapshot`."""
    try:
        if not manifest_path.is_file():
            raise InvalidSnapshot(f"the manifest cannot be read: there is no file {manifest_path}")
        if manifest_path.stat().st_size > MAX_MANIFEST_BYTES:
            raise InvalidSnapshot(f"{manifest_path} is larger than {MAX_MANIFEST_BYTES:,} bytes")
        raw = manifest_path.read_bytes()
        manifest = Manifest.model_validate_json(raw)
    except OSError as error:
        raise InvalidSnapshot(f"the manifest cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise InvalidSnapshot(f"{manifest_path}: {where}: {first['msg']}") from error
    return Snapshot(manifest_path.parent, manifest, hashlib.sha256(raw).digest())


def locate_manifest(manifest: str, *, tenant_id: str, roots: Sequence[Path]) -> Path:
    """The manifest's path when it lies under ``ROOT/{tenant}/`` of an allowed root.

    Links are resolved first, so that none leads out. Raises `InvalidSnapshot` otherwise.
    """
    path = Path(manifest)
    if path.name == MANIFEST and path.is_absolute():
        resolved = path.resolve()
        if any(resolved.is_relative_to(root.resolve() / tenant_id) for root in roots):
            return resolved
    raise InvalidSnapshot(
        f"the manifest must be a {MANIFEST} under a configured snapshot root, in the folder of"
        f" tenant {tenant_id}"
    )


def sha256_of(path: Path) -> bytes:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
