"""The warm index of a memory's names: visible, ranked, and following what is written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from knowledge.memory.names import NameIndex
from knowledge.memory.recalling import fuse
from knowledge.model.fact import name_key
from knowledge.storage.postgres.facts.filters import FactScope
from knowledge.text.analysis import analyse

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def row(subject: str, object_: str, *, is_open: bool = True, **readers: Any) -> dict[str, Any]:
    said = {
        "is_open": is_open,
        "subject": subject,
        "subject_key": name_key(subject),
        "subject_type": None,
        "object": object_,
        "object_key": name_key(object_),
        "object_type": None,
        "acl": None,
        "source_id": None,
        "lineage_sources": None,
        "session_scope": None,
        "of_chunk": False,
    }
    return said | readers


def index(*rows: dict[str, Any], merges: list[dict[str, str]] | None = None) -> NameIndex:
    made = NameIndex("t1", "p1", "t1|main")
    made.apply(rows, merges or [], NOW)
    return made


def scope(
    *, acl: tuple[str, ...] = (), denied: tuple[str, ...] = (), sessions: tuple[str, ...] = ()
) -> FactScope:
    return FactScope("t1", "p1", acl, denied, NOW, sessions=sessions)


def found(
    names: NameIndex, query: str, reader: FactScope | None = None, **options: Any
) -> list[str]:
    mask = names.visible(reader or scope(), **options)
    return [names.entity(hit.number).name for hit in names.by_words(analyse(query), mask, 5)]


def test_names_are_ranked_by_their_words_and_ties_by_length_then_key() -> None:
    names = index(row("billing api", "ledger"), row("Billing", "api gateway"), row("zeta api", "x"))
    assert found(names, "billing") == ["Billing", "billing api"]
    assert found(names, "api") == ["zeta api", "api gateway", "billing api"]


@pytest.mark.parametrize(
    ("readers", "reader", "is_seen"),
    [
        ({}, scope(), True),
        ({"acl": ["group:ops"]}, scope(), False),
        ({"acl": ["group:ops"]}, scope(acl=("group:ops",)), True),
        ({"source_id": "wiki"}, scope(denied=("wiki",)), False),
        ({"source_id": "wiki"}, scope(denied=("blog",)), True),
        ({"lineage_sources": ["wiki"]}, scope(denied=("wiki",)), False),
        ({"session_scope": "s1"}, scope(), False),
        ({"session_scope": "s1"}, scope(sessions=("s2",)), False),
        ({"session_scope": "s1"}, scope(sessions=("s1",)), True),
        ({"of_chunk": True}, scope(), False),
    ],
)
def test_a_name_is_found_by_who_may_read_a_fact_of_it(
    readers: dict[str, Any], reader: FactScope, is_seen: bool
) -> None:
    names = index(row("secret plan", "vault", **readers))
    assert found(names, "secret plan", reader) == (["secret plan"] if is_seen else [])
    open_too = index(row("secret plan", "vault", **readers), row("secret plan", "roof"))
    assert found(open_too, "secret plan", reader) == ["secret plan"]


def test_only_of_a_session_leaves_out_what_is_shared() -> None:
    names = index(row("plan a", "x"), row("plan b", "x", session_scope="s1"))
    reader = scope(sessions=("s1",))
    assert found(names, "plan", reader, of_session=True) == ["plan b"]
    assert sorted(found(names, "plan", reader)) == ["plan a", "plan b"]


def test_what_closes_is_gone_at_once_and_what_is_said_twice_stays() -> None:
    names = index(row("cache", "redis"), row("cache", "memcached"))
    names.apply([row("cache", "redis", is_open=False)], [], NOW)
    assert found(names, "redis") == []
    assert found(names, "cache") == ["cache"]
    names.apply([row("cache", "memcached", is_open=False)], [], NOW)
    assert found(names, "cache") == []
    names.apply([row("cache", "redis")], [], NOW)
    assert set(found(names, "redis cache")) == {"cache", "redis"}


def test_a_merged_name_is_found_by_the_other_and_no_longer_when_it_is_undone() -> None:
    merge = {
        "name": "k8s",
        "name_key": "k8s",
        "into_name": "Kubernetes",
        "into_key": "kubernetes",
    }
    names = index(row("Kubernetes", "cluster"), merges=[merge])
    assert found(names, "k8s") == ["Kubernetes"]
    names.apply([], [], NOW)
    assert found(names, "k8s") == []


def test_meaning_is_by_cosine_over_the_floor_and_by_the_model_in_use() -> None:
    names = index(row("car", "house"))
    car, house = np.eye(4, dtype=np.float32)[:2]
    names.take_vectors("model-a", [("car", car), ("house", house), ("never told", car)])
    mask = names.visible(scope())
    query = np.array([0.9, 0.1, 0, 0], np.float32)
    (hit,) = names.by_meaning(query, 0.5, mask, 5)
    assert (names.entity(hit.number).name, round(hit.score, 2)) == ("car", 0.9)
    assert names.by_meaning(np.ones(3, np.float32), 0.5, mask, 5) == []  # of another model
    names.take_vectors("model-b", [("house", np.array([1, 0], np.float32))])
    (hit,) = names.by_meaning(np.array([1, 0], np.float32), 0.5, names.visible(scope()), 5)
    assert names.entity(hit.number).name == "house"


def test_a_name_found_by_both_legs_stands_before_those_found_by_one() -> None:
    names = index(row("alpha car", "beta car"), row("gamma", "delta"))
    mask = names.visible(scope())
    by_words = names.by_words(analyse("car"), mask, 5)
    vectors = [
        ("gamma", np.array([1, 0], np.float32)),
        ("beta car", np.array([0.8, 0.6], np.float32)),
    ]
    names.take_vectors("m", vectors)
    by_meaning = names.by_meaning(np.array([1, 0], np.float32), 0.4, names.visible(scope()), 5)
    fused = {names.entity(n).name: via for n, via in fuse(names, by_words, by_meaning, 3).items()}
    assert next(iter(fused.items())) == ("beta car", "both")
    assert fused == {"beta car": "both", "alpha car": "name", "gamma": "vector"}


def test_many_names_are_held_without_gaps() -> None:
    names = index(*[row(f"entity {n}", f"entity {n + 1}") for n in range(1000)])
    assert len(names) == 1001
    assert found(names, "entity 500")[0] == "entity 500"
    names.take_vectors(
        "m", [(f"entity {n}", np.eye(2, dtype=np.float32)[n % 2]) for n in range(1001)]
    )
    hits = names.by_meaning(np.array([1, 0], np.float32), 0.9, names.visible(scope()), 24)
    assert len(hits) == 24
    keys = [names.entity(hit.number).key for hit in hits]
    assert keys == sorted(keys, key=lambda key: (len(key), key))
