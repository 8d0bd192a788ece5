"""How every backend of the hybrid index keeps items: one suite over all of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from knowledge.errors import PartialWrite
from knowledge.model.revision import Generation
from knowledge.storage.backend import HybridIndex
from tests.storage.conftest import Backend
from tests.storage.port import (
    near,
    numbers,
    vectors_of,
    version_of,
    versions_of,
    worded,
)


def test_the_same_id_is_overwritten_with_all_it_has(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    index.upsert(generation, [version_of(1, "old")], vectors_of(1))
    moved = np.array([[0, 0, 1, 0]], dtype=np.float32)
    index.upsert(generation, [version_of(1, "new", to_rev=9, acl=("group:a",))], moved)
    [item] = index.items(generation, with_vectors=True)
    assert (item.from_rev, item.to_rev, item.acl) == (1, 9, ("group:a",))
    assert item.vector is not None
    np.testing.assert_allclose(item.vector, moved[0])
    assert index.count(generation) == 1
    assert worded(backend, generation, ["old"]) == []
    assert numbers(worded(backend, generation, ["new"])) == [1]


def test_items_come_in_id_order_from_a_place_on_and_only_so_many(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    versions = versions_of(30)
    index.upsert(generation, versions[::-1], vectors_of(30))

    def listed(**which: Any) -> list[int]:
        return [item.object_id.int for item in index.items(generation, **which)]

    assert listed() == list(range(1, 31))
    assert listed(after=uuid.UUID(int=10), limit=5) == [11, 12, 13, 14, 15]
    assert listed(after=uuid.UUID(int=28)) == [29, 30]
    assert listed(after=uuid.UUID(int=30)) == []
    assert listed(limit=0) == []
    assert all(item.vector is None for item in index.items(generation))


def test_more_items_than_a_page_are_all_listed_once(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made(None)
    index.upsert(generation, versions_of(2100), None)
    assert [item.object_id.int for item in index.items(generation)] == list(range(1, 2101))


def test_an_item_tells_nobody_from_everyone(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    acls: list[Any] = [None, (), ("group:a", "user:b")]
    versions = [version_of(number, acl=acl) for number, acl in enumerate(acls, start=1)]
    index.upsert(generation, versions, vectors_of(3))
    assert [item.acl for item in index.items(generation)] == acls


def test_deleting_passes_over_unknown_ids(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    index.upsert(generation, versions_of(5), vectors_of(5))
    index.delete(generation, [uuid.UUID(int=n) for n in (2, 4, 99)])
    index.delete(generation, [uuid.UUID(int=2)])
    index.delete(generation, [])
    assert [item.object_id.int for item in index.items(generation)] == [1, 3, 5]


def test_a_generation_can_be_made_and_dropped_twice(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    index.create_generation(generation, with_vectors=True)
    index.upsert(generation, versions_of(3), vectors_of(3))
    index.create_generation(generation, with_vectors=True)
    assert index.count(generation) == 3
    index.drop_generation(generation)
    index.drop_generation(generation)
    index.create_generation(generation, with_vectors=True)
    assert index.count(generation) == 0
    assert list(index.items(generation)) == []


def test_a_written_version_is_found_by_its_words_and_another_is_not(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation = made()
    version = version_of(1, "lease renewed")
    assert not index.probe(generation, version)
    index.upsert(generation, [version], vectors_of(1))
    assert index.probe(generation, version)
    assert not index.probe(generation, version_of(1, "unwritten"))
    assert index.probe(generation, version_of(2, ""))


def test_each_generation_holds_its_own_items(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    first, second, foreign = made(), made(), made(tenant_id="port-eu")
    index.upsert(first, versions_of(3), vectors_of(3))
    index.upsert(second, [version_of(1, "other")], vectors_of(1))
    index.upsert(foreign, [version_of(7)], vectors_of(1))
    index.delete(second, [uuid.UUID(int=2)])
    assert numbers(worded(backend, first, ["lease"])) == [1, 2, 3]
    assert worded(backend, second, ["lease"]) == []
    index.drop_generation(second)
    assert (index.count(first), index.count(foreign)) == (3, 1)


def test_profiles_of_another_dimension_stand_beside_each_other(
    backend: Backend, index: HybridIndex, made: Callable[..., Generation]
) -> None:
    small, large = made("port@1"), made("port@2")
    index.upsert(small, versions_of(3), vectors_of(3, 4))
    index.upsert(large, versions_of(3), vectors_of(3, 6))
    assert numbers(near(backend, small, vectors_of(1, 4)[0])) == [1, 2, 3]
    assert numbers(near(backend, large, vectors_of(1, 6)[0])) == [1, 2, 3]


def test_a_class_is_named_after_profile_version_and_schema(index: HybridIndex) -> None:
    names = {index.class_name(profile) for profile in ("a@1", "a@2", "b@1", None)}
    assert len(names) == 4


def test_a_vector_that_is_no_number_is_refused_as_a_whole(
    index: HybridIndex, made: Callable[..., Generation]
) -> None:
    generation, vectors = made(), vectors_of(3)
    vectors[1, 0] = np.nan
    with pytest.raises(PartialWrite):
        index.upsert(generation, versions_of(3), vectors)
    assert index.count(generation) == 0
