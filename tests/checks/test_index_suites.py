"""The suites over a real collection: each fault behind our back is found by its check."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_like_checks import Status
from knowledge.indexing.consistency import compare_hybrid
from knowledge.model.chunk import ChunkVersion
from knowledge.model.collection import Collection
from knowledge.model.revision import OPEN, Generation
from knowledge.runtime import Runtime
from knowledge.storage.backend import Vector
from knowledge.storage.postgres import chunk_versions
from orchestration.checking import (
    EMBEDDINGS,
    HYBRID_INDEX,
    SUITES,
    Looked,
    run_suite,
)
from tests.checks.conftest import bad
from tests.publication import collection_of


def _ids(looked: list[Looked], name: str) -> set[str | None]:
    """What the sample of a check shows, as a set of ids."""
    return {
        value
        for seen in looked
        if seen.outcome.check.name == name
        for row in seen.outcome.sample
        for value in row.values()
    }


def _generation(runtime: Runtime, collection: Collection) -> Generation:
    found = compare_hybrid(runtime, collection)
    assert found is not None
    return found.generation


def _versions(runtime: Runtime, collection: Collection) -> list[ChunkVersion]:
    batches = chunk_versions.versions_held(
        runtime.app, collection, created=1, upto=collection.head_rev
    )
    return [version for batch in batches for version in batch]


def _vectors(runtime: Runtime, collection: Collection, versions: list[ChunkVersion]) -> Vector:
    store = runtime.vectors(collection.tenant_id, "minilm@1")
    return store.get([version.text_hash for version in versions])


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("whole", [True, False])
def test_a_sound_collection_passes_every_check(
    runtime: Runtime, collection: Collection, suite: str, whole: bool
) -> None:
    assert bad(run_suite(runtime, collection, suite, whole=whole)) == {}


@pytest.mark.parametrize("suite", SUITES)
def test_a_collection_that_was_never_published_passes_every_check(
    runtime: Runtime, tenant: str, suite: str
) -> None:
    assert bad(run_suite(runtime, collection_of(runtime, tenant), suite)) == {}


# --- the index ---------------------------------------------------------------------------

Fault = Callable[[Runtime, Generation, ChunkVersion, Vector], None]


def _lost(runtime: Runtime, generation: Generation, version: ChunkVersion, _v: Vector) -> None:
    runtime.index.delete(generation, [version.object_id])


def _orphan(runtime: Runtime, generation: Generation, version: ChunkVersion, v: Vector) -> None:
    runtime.index.upsert(generation, [replace(version, object_id=uuid.UUID(int=7))], v)


def _other_acl(runtime: Runtime, generation: Generation, version: ChunkVersion, v: Vector) -> None:
    chunk = replace(version.chunk, acl=("user:mallory",))
    runtime.index.upsert(generation, [replace(version, chunk=chunk)], v)


def _opened_again(
    runtime: Runtime, generation: Generation, version: ChunkVersion, v: Vector
) -> None:
    runtime.index.upsert(generation, [replace(version, to_rev=OPEN)], v)


def _longer(runtime: Runtime, generation: Generation, version: ChunkVersion, v: Vector) -> None:
    runtime.index.upsert(generation, [version], v * 2)


def _without_vector(
    runtime: Runtime, generation: Generation, version: ChunkVersion, _v: Vector
) -> None:
    runtime.index.delete(generation, [version.object_id])
    runtime.index.upsert(generation, [version], None)


def _nan(runtime: Runtime, generation: Generation, version: ChunkVersion, v: Vector) -> None:
    broken = v.copy()
    broken[0, 3] = np.nan
    runtime.index.upsert(generation, [version], broken)


COUNTS = {"item_count_equals_postgresql", "visible_count_equals_postgresql"}
FAULTS: list[tuple[Fault, bool, set[str]]] = [
    (_lost, False, COUNTS | {"no_item_is_lost"}),
    (_orphan, False, COUNTS | {"no_item_is_unknown_to_postgresql"}),
    (_other_acl, False, {"acl_equals_postgresql"}),
    (
        _opened_again,
        True,
        {
            "one_version_of_a_chunk_is_visible",
            "revisions_equal_postgresql",
            "visible_count_equals_postgresql",
        },
    ),
    (_longer, False, {"indexed_vector_has_length_1"}),
    (_without_vector, False, {"indexed_vector_is_there"}),
    (_nan, False, {"indexed_vector_is_finite"}),
]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("fault", "dead", "names"), FAULTS)
def test_a_fault_in_the_index_is_found_by_its_checks_and_named(
    runtime: Runtime,
    collection: Collection,
    fault: Fault,
    dead: bool,
    names: set[str],
    whole: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("knowledge.storage.weaviate.index.require_finite", lambda _vectors: None)
    (version, *_) = [
        version
        for version in _versions(runtime, collection)
        if (version.to_rev != OPEN) is dead and (dead or version.chunk.path != "0")
    ]
    generation = _generation(runtime, collection)
    fault(runtime, generation, version, _vectors(runtime, collection, [version]))

    looked = run_suite(runtime, collection, HYBRID_INDEX, whole=whole)

    assert bad(looked) == dict.fromkeys(names, Status.FAIL)
    (name,) = names - COUNTS if len(names - COUNTS) == 1 else {"revisions_equal_postgresql"}
    shown = {str(version.object_id), str(version.chunk_id), str(uuid.UUID(int=7))}
    assert _ids(looked, name) & shown


def test_a_stretch_sees_lost_and_foreign_items_and_moves_with_the_revision(
    runtime: Runtime, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowledge.indexing.consistency.LOOKED_AT", 3)
    seen, starts = set(), set()
    generation = _generation(runtime, collection)
    for revision in range(40):
        moved = replace(generation, applied_rev=2 + revision)
        found = compare_hybrid(runtime, collection, generation=moved)
        assert found is not None
        assert found.orphans == ()
        assert found.held["object_id"] == found.owed["object_id"]
        ids = found.held["object_id"].to_pylist()
        seen |= set(ids)
        starts.add(ids[0] if ids else None)
    assert len(seen) == 7
    assert len(starts) > 2


def test_what_a_publish_is_at_work_on_is_not_compared(
    runtime: Runtime, collection: Collection
) -> None:
    """As if the run was killed between writing the index and noting what it has reached."""
    generation = _generation(runtime, collection)
    behind = replace(generation, applied_rev=1)
    found = compare_hybrid(runtime, collection, generation=behind, whole=True)
    assert found is not None
    assert (found.expected, found.found, found.orphans) == (5, 5, ())


# --- the vectors -------------------------------------------------------------------------


def _spoil(runtime: Runtime, collection: Collection, change: Callable[[Vector], Vector]) -> str:
    """Change the vectors of one Parquet file of the cache, behind its back."""
    folder = runtime.home.vectors_dir / collection.tenant_id
    path = max(folder.rglob("*.parquet"), key=lambda path: path.stat().st_size)
    table = pq.read_table(path)
    vectors = change(np.array(table["vector"].to_pylist(), dtype=np.float32))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    pq.write_table(pa.table({"text_hash": table["text_hash"], "vector": column}), path)
    return path.name


def _with(value: float) -> Callable[[Vector], Vector]:
    def change(vectors: Vector) -> Vector:
        vectors[:, 0] = value
        return vectors

    return change


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_with(float("nan")), "cached_vector_is_finite"),
        (_with(float("-inf")), "cached_vector_is_finite"),
        (lambda vectors: vectors * 0.9, "cached_vector_has_length_1"),
        (lambda vectors: np.eye(len(vectors)), "cached_vector_has_the_dimension_of_the_profile"),
    ],
)
def test_a_wrong_vector_in_the_cache_is_found_and_its_file_named(
    runtime: Runtime, collection: Collection, change: Callable[[Vector], Vector], name: str
) -> None:
    file_name = _spoil(runtime, collection, change)
    looked = run_suite(runtime, collection, EMBEDDINGS)
    assert bad(looked) == {name: Status.FAIL}
    assert file_name in _ids(looked, name)


def test_a_vector_file_that_was_deleted_or_broken_blocks(
    runtime: Runtime, collection: Collection
) -> None:
    paths = sorted((runtime.home.vectors_dir / collection.tenant_id).rglob("*.parquet"))
    paths[0].write_bytes(b"no parquet")
    looked = run_suite(runtime, collection, EMBEDDINGS)
    assert set(bad(looked).values()) == {Status.ERROR}
    for path in paths:
        path.unlink()
    looked = run_suite(runtime, collection, EMBEDDINGS)
    assert bad(looked) == {"every_needed_text_has_a_vector": Status.FAIL}


def test_a_wrong_vector_that_was_replaced_is_no_fault(
    runtime: Runtime, collection: Collection
) -> None:
    versions = _versions(runtime, collection)
    vectors = _vectors(runtime, collection, versions)
    _spoil(runtime, collection, _with(float("nan")))
    store = runtime.vectors(collection.tenant_id, "minilm@1")
    store.put([version.text_hash for version in versions], vectors)
    assert bad(run_suite(runtime, collection, EMBEDDINGS)) == {}
