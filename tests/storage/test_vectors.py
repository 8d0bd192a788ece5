"""The embedding cache."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from knowledge.errors import IndexInconsistent
from knowledge.runtime import Runtime

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
