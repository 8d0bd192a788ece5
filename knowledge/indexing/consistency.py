"""What the hybrid index holds beside what PostgreSQL says it must hold, as two tables."""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from knowledge.errors import IndexInconsistent
from knowledge.model.collection import Collection
from knowledge.model.revision import Generation
from knowledge.runtime import Runtime
from knowledge.storage.backend import StoredItem
from knowledge.storage.postgres import generations
from knowledge.storage.postgres.database import Row
from knowledge.storage.postgres.expected import owed_items, profile_dimension
from knowledge.storage.vectors import UNIT_TOLERANCE

LOOKED_AT: Final = 1000
"""Items of a stretch: so many are compared after every publish, however large the index."""

_ID_SPACE: Final = 1 << 128
_BATCH: Final = 5000


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


HELD_SCHEMA: Final = _schema(
    object_id=pa.string(),
    from_rev=pa.int32(),
    to_rev=pa.int32(),
    acl=pa.list_(pa.string()),
    has_vector=pa.bool_(),
    dimension=pa.int32(),
    norm=pa.float64(),
)
OWED_SCHEMA: Final = _schema(
    object_id=pa.string(),
    chunk_id=pa.string(),
    from_rev=pa.int32(),
    to_rev=pa.int32(),
    acl=pa.list_(pa.string()),
    is_settled=pa.bool_(),
    is_visible=pa.bool_(),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A generation and a stretch of ids, or all of them, on both sides.

    ``held`` (`HELD_SCHEMA`) is the index's side, ``norm`` NaN for a vector that is not finite;
    ``owed`` (`OWED_SCHEMA`) is PostgreSQL's. ``found`` counts what the index holds in all,
    ``expected`` what it must; ``dimension`` is the profile's, None without vectors. What no
    revision reads any more is on neither side.
    """

    generation: Generation
    expected: int
    found: int
    dimension: int | None
    held: pa.Table
    owed: pa.Table

    @property
    def revision(self) -> int:
        return self.generation.applied_rev

    @property
    def looked_at(self) -> int:
        return len(self.held)

    @property
    def orphans(self) -> tuple[uuid.UUID, ...]:
        """Items of the stretch that PostgreSQL does not know, in id order."""
        ids = set(self.held["object_id"].to_pylist()) - set(self.owed["object_id"].to_pylist())
        return tuple(sorted(map(uuid.UUID, ids)))

    @property
    def differing(self) -> tuple[uuid.UUID, ...]:
        """Items of the stretch that are not what PostgreSQL says, lost and foreign ones too, or
        whose vector cannot be searched with, in id order."""
        held = {row["object_id"]: row for row in self.held.to_pylist()}
        owed = {row["object_id"]: row for row in self.owed.to_pylist()}
        settled = {key for key, row in owed.items() if row["is_settled"]}
        wrong = (held.keys() - owed.keys()) | (settled - held.keys())
        wrong |= {key for key in settled & held.keys() if self._differs(held[key], owed[key])}
        return tuple(sorted(map(uuid.UUID, wrong)))

    def _differs(self, held: Row, owed: Row) -> bool:
        if any(held[name] != owed[name] for name in ("from_rev", "to_rev", "acl")):
            return True
        if self.generation.embedding_profile is None:
            return False
        # Also true of a length that is not a number.
        return held["dimension"] != self.dimension or not abs(held["norm"] - 1) <= UNIT_TOLERANCE


def require_consistent(runtime: Runtime, collection: Collection, generation: Generation) -> None:
    """Raise `IndexInconsistent` where a stretch of the index is not what PostgreSQL says."""
    found = compare_hybrid(runtime, collection, generation=generation)
    if found is not None and (wrong := found.differing):
        raise IndexInconsistent(
            f"{len(wrong)} of {found.looked_at} items of the index differ from PostgreSQL"
            f" (first: {wrong[0]}): materialise again, or `knowledge rebuild`",
            differing=len(wrong),
        )


def compare_hybrid(
    runtime: Runtime,
    collection: Collection,
    *,
    whole: bool = False,
    generation: Generation | None = None,
) -> Comparison | None:
    """Compare the collection's hybrid index with PostgreSQL; None before it was first built.

    Looks at a stretch that another revision sees elsewhere, and then trusts the count that the
    generation keeps of itself: the caller holds the lease. Or at the ``whole``: the index is read
    first, and what is touched after that is not settled, so no lease is needed. Without
    ``generation``, at the one that a publish is building, else at the serving one.
    """
    generation = generation or _built(runtime, collection)
    if generation is None:
        return None
    found = runtime.index.count(generation)
    start, limit = (None, None) if whole else (_start(generation, found), LOOKED_AT)
    with_vectors = generation.embedding_profile is not None
    items = runtime.index.items(generation, after=start, limit=limit, with_vectors=with_vectors)
    held = _table(map(_held_row, items), HELD_SCHEMA)
    with owed_items(runtime.app, generation, after=start, limit=limit) as expected:
        owed = _table(map(_owed_row, expected.rows), OWED_SCHEMA)
    end = _common_end(held, owed, limit)
    held = _upto(held, end).filter(pc.field("to_rev") > expected.floor)
    owed = _upto(owed, end)
    counts = _settled_counts(held, owed) if whole else (generation.items, found)
    dimension = profile_dimension(runtime.app, generation.tenant_id, generation.embedding_profile)
    return Comparison(generation, *counts, dimension, held, owed)


def _settled_counts(held: pa.Table, owed: pa.Table) -> tuple[int, int]:
    """Items that there must be and that there are, but for what a publish is at work on."""
    settled = owed.filter(pc.field("is_settled"))
    unsettled = owed.filter(~pc.field("is_settled"))["object_id"]
    found = held.filter(~pc.field("object_id").isin(unsettled.combine_chunks()))
    return len(settled), len(found)


def generation_of(runtime: Runtime, collection: Collection) -> Generation | None:
    """The generation of the hybrid index that a publish is building, else the serving one."""
    building, serving = _generations(runtime, collection)
    return building or serving


def _generations(
    runtime: Runtime, collection: Collection
) -> tuple[Generation | None, Generation | None]:
    """What a publish is building, which a rebuild beside it is not, and what serves."""
    with runtime.app.tenant(collection.tenant_id) as connection:
        found = generations.generations_in(
            connection, collection, backend=runtime.index.name, states=("building", "serving")
        )
    by_publish = [item for item in found if item.state == "building" and not item.rebuild_id]
    serving = [item for item in found if item.state == "serving"]
    return next(reversed(by_publish), None), next(iter(serving), None)


def _built(runtime: Runtime, collection: Collection) -> Generation | None:
    """The one of `generation_of`, passing over what nothing was applied to yet."""
    found = _generations(runtime, collection)
    return next((item for item in found if item is not None and item.applied_rev), None)


def _start(generation: Generation, items: int) -> uuid.UUID | None:
    """Where the stretch begins. Ids are spread evenly, so that every item is as likely to be
    looked at: a beginning before the first id is the beginning."""
    if items <= LOOKED_AT:
        return None
    seed = f"{generation.generation_id}{generation.applied_rev}".encode()
    place = int.from_bytes(hashlib.sha256(seed).digest()[:16])
    start = (place * (items + LOOKED_AT) - LOOKED_AT * _ID_SPACE) // items
    return uuid.UUID(int=start) if start > 0 else None


def _table(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """The rows as columns, of which a large index has room in memory."""
    batches = []
    while part := list(itertools.islice(rows, _BATCH)):
        batches.append(pa.RecordBatch.from_pylist(part, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def _held_row(item: StoredItem) -> dict[str, Any]:
    vector = item.vector
    return {
        "object_id": str(item.object_id),
        "from_rev": item.from_rev,
        "to_rev": item.to_rev,
        "acl": None if item.acl is None else sorted(item.acl),
        "has_vector": vector is not None,
        "dimension": None if vector is None else len(vector),
        "norm": None if vector is None else _norm(vector),
    }


def _norm(vector: np.ndarray[Any, Any]) -> float:
    if not np.isfinite(vector).all():
        return float("nan")
    return float(np.linalg.norm(vector.astype(np.float64)))


def _owed_row(row: Row) -> dict[str, Any]:
    return row | {
        "object_id": str(row["object_id"]),
        "chunk_id": str(row["chunk_id"]),
        "acl": None if row["acl"] is None else sorted(row["acl"]),
    }


def _common_end(held: pa.Table, owed: pa.Table, limit: int | None) -> str | None:
    """The last id that both sides have looked as far as; None for the end of all ids."""
    full = [str(table["object_id"][-1]) for table in (held, owed) if len(table) == limit]
    return min(full, default=None)


def _upto(table: pa.Table, end: str | None) -> pa.Table:
    if end is None:
        return table
    ids = map(str, table["object_id"])
    return table.slice(0, sum(1 for value in ids if value <= end))
