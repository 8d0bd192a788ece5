"""The embedding cache."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from knowledge.errors import IndexInconsistent, InvalidVector
from knowledge.runtime import Runtime
from knowledge.storage.backend import Vector

HASHES = [hashlib.sha256(bytes([number])).digest() for number in range(3)]
VECTORS = np.eye(3, dtype=np.float32)


def test_vectors_come_back_in_the_order_asked_for(runtime: Runtime, tenant: str) -> None:
    store = runtime.vectors(tenant, "p@1")
    store.put(HASHES[:2], VECTORS[:2])
    store.put(HASHES[2:], VECTORS[2:])
    assert store.missing(HASHES) == []
    assert (store.get(HASHES[::-1]) == VECTORS[::-1]).all()


def test_another_tenant_and_another_profile_share_nothing(runtime: Runtime, tenant: str) -> None:
    runtime.vectors(tenant, "p@1").put(HASHES, VECTORS)
    assert runtime.vectors(tenant, "p@2").missing(HASHES) == HASHES
    with pytest.raises(IndexInconsistent, match="materialise embeddings again"):
        runtime.vectors(tenant, "p@2").get(HASHES)


def test_what_a_deleted_file_held_is_missing_and_can_be_put_again(
    runtime: Runtime, tenant: str
) -> None:
    store = runtime.vectors(tenant, "p@1")
    store.put(HASHES, VECTORS)
    for part in (runtime.home.vectors_dir / tenant).rglob("*.parquet"):
        part.unlink()
    assert store.missing(HASHES) == HASHES
    store.put(HASHES, VECTORS)
    assert (store.get(HASHES) == VECTORS).all()


def _first(value: float) -> Vector:
    changed = VECTORS.copy()
    changed[0, 0] = value
    return changed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 1.002])
def test_a_batch_with_a_vector_that_is_not_finite_or_not_of_length_1_is_refused(
    runtime: Runtime, tenant: str, value: float
) -> None:
    store = runtime.vectors(tenant, "p@1")
    with pytest.raises(InvalidVector, match="1 of 3 vectors of profile p@1 are not finite or not"):
        store.put(HASHES, _first(value))
    assert store.missing(HASHES) == HASHES
    assert not list((runtime.home.vectors_dir / tenant).rglob("*.parquet"))


def test_a_vector_may_be_a_thousandth_longer_or_shorter(runtime: Runtime, tenant: str) -> None:
    store = runtime.vectors(tenant, "p@1")
    store.put(HASHES, _first(0.9995))
    assert store.missing(HASHES) == []


def test_vectors_of_another_dimension_than_the_stored_profile_are_refused(
    runtime: Runtime, tenant: str
) -> None:
    runtime.permitted_embedder("minilm@1", allow_remote=False)  # which stores the profile
    with pytest.raises(InvalidVector, match="3 vectors of dimension 384, not 3 x 3"):
        runtime.vectors(tenant, "minilm@1").put(HASHES, VECTORS)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_vector_that_became_not_finite_is_never_given_out_and_its_file_is_named(
    runtime: Runtime, tenant: str, value: float
) -> None:
    store = runtime.vectors(tenant, "p@1")
    store.put(HASHES, VECTORS)
    (path,) = set(store.parts(HASHES).values())
    flat = pa.array(_first(value).ravel())
    column = pa.FixedSizeListArray.from_arrays(flat, 3)
    pq.write_table(pa.table({"text_hash": pa.array(HASHES, pa.binary(32)), "vector": column}), path)
    with pytest.raises(IndexInconsistent, match=f"{path.name} holds a vector that is not finite"):
        store.get(HASHES)
    assert (store.get(HASHES[1:]) == VECTORS[1:]).all()
    path.unlink()
    assert store.missing(HASHES) == HASHES


def test_a_file_that_is_broken_is_named(runtime: Runtime, tenant: str) -> None:
    store = runtime.vectors(tenant, "p@1")
    store.put(HASHES, VECTORS)
    (path,) = set(store.parts(HASHES).values())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(IndexInconsistent, match=r"cannot be read: remove the file"):
        store.get(HASHES)


def test_no_vectors_are_nothing_to_store(runtime: Runtime, tenant: str) -> None:
    assert runtime.vectors(tenant, "p@1").put([], np.empty((0, 3), np.float32)) == 0
