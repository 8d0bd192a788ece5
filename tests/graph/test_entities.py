"""Names of one entity: found by normalised name, alias and type; merged, and taken back."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import Any

import pytest

from knowledge.errors import Conflict, NotFound
from knowledge.model.fact import EntityName
from knowledge.model.merge import Mention, Merge, Merges
from knowledge.storage.postgres.facts import entities
from tests.graph.telling import Graph, fact


def _merge(graph: Graph, name: str, into: str, **wanted: Any) -> uuid.UUID:
    options = {"namespace": "default", "reason": "same team", "by": "operator"} | wanted
    return entities.merge(graph.runtime.app, graph.tenant_id, name=name, into=into, **options)


def test_merged_names_answer_for_one_another_and_keep_what_was_told(graph: Graph) -> None:
    graph.tell(fact("ICE", "PART_OF", "DB"), fact("ICE Train", "USES", "rails"))
    _merge(graph, "ice", "ICE Train")
    for name in ("ice", "ICE train"):
        found = graph.triples(subject=name)
        assert found == {"ICE PART_OF DB", "ICE Train USES rails"}
    assert len(graph.history("ice").facts) == 2


def test_merges_work_for_objects_and_over_several_steps(graph: Graph) -> None:
    for name in ("a", "b", "c", "d"):
        graph.tell(fact("billing", "USES", name))
    _merge(graph, "a", "b")
    _merge(graph, "c", "b")
    _merge(graph, "b", "d")
    for name in ("a", "b", "c", "d"):
        assert graph.objects(object=name) == ["a", "b", "c", "d"]


def test_an_undone_merge_is_as_if_it_had_not_been_but_stays_recorded(graph: Graph) -> None:
    graph.tell(fact("ice", "PART_OF", "db"), fact("train", "USES", "rails"))
    merge = _merge(graph, "ice", "train")
    entities.undo_merge(graph.runtime.app, graph.tenant_id, merge, by="ada")
    assert graph.objects(subject="ice") == ["db"]
    (kept,) = entities.list_merges(graph.runtime.app, graph.tenant_id)
    assert (kept["name"], kept["into_name"], kept["undone_by"]) == ("ice", "train", "ada")
    _merge(graph, "ice", "train")
    assert graph.objects(subject="ice") == ["db", "rails"]
    with pytest.raises(NotFound):
        entities.undo_merge(graph.runtime.app, graph.tenant_id, merge, by="ada")


def test_a_merge_holds_in_its_namespace_only(graph: Graph) -> None:
    for namespace in ("default", "other"):
        for name in ("ice", "train"):
            graph.tell(fact(name, "USES", f"{namespace} {name}", namespace=namespace))
    _merge(graph, "ice", "train", namespace="other")
    assert graph.objects(subject="ice") == ["default ice", "other ice", "other train"]


def test_a_merge_of_one_type_leaves_the_other_alone(graph: Graph) -> None:
    graph.tell(
        fact("mercury", "USES", "orbit", subjectType="planet"),
        fact("mercury", "USES", "glass", subjectType="element"),
        fact("quicksilver", "USES", "flask", subjectType="element"),
        fact("quicksilver", "USES", "stage", subjectType="band"),
    )
    _merge(graph, "mercury", "quicksilver", type_="element", into_type="element")
    assert graph.objects(subject="mercury") == ["flask", "glass", "orbit"]
    assert graph.objects(subject="mercury", subject_type="element") == ["flask", "glass"]
    assert graph.objects(subject="mercury", subject_type="planet") == ["orbit"]


def test_a_mention_without_a_type_is_of_every_type(graph: Graph) -> None:
    graph.tell(
        fact("mercury", "USES", "orbit", subjectType="planet"),
        fact("mercury", "USES", "anything"),
    )
    assert graph.objects(subject="mercury", subject_type="planet") == ["anything", "orbit"]
    assert graph.objects(subject="mercury", subject_type="element") == ["anything"]


@pytest.mark.parametrize("chain", [("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")], ids=len)
def test_names_never_stand_for_one_another_in_a_circle(
    graph: Graph, chain: tuple[str, ...]
) -> None:
    for name, into in pairwise(chain):
        _merge(graph, name, into)
    with pytest.raises(Conflict, match="already"):
        _merge(graph, chain[-1], chain[0])


def test_a_name_stands_for_one_entity_and_not_for_itself(graph: Graph) -> None:
    _merge(graph, "a", "b")
    with pytest.raises(Conflict, match="A was merged already"):
        _merge(graph, "A", "c")
    with pytest.raises(Conflict, match="is that entity already"):
        _merge(graph, "x", " X ")


def test_another_tenants_merges_are_not_seen_nor_undone(graph: Graph) -> None:
    other = Graph(graph.runtime, f"{graph.tenant_id}-2", graph.reader, graph.runner)
    assert other.caller
    for each in (graph, other):
        each.tell(fact("ice", "USES", "db"), fact("train", "USES", "rails"))
    merge = _merge(graph, "ice", "train")
    assert other.objects(subject="ice") == ["db"]
    assert entities.list_merges(other.runtime.app, other.tenant_id) == []
    with pytest.raises(NotFound):
        entities.undo_merge(other.runtime.app, other.tenant_id, merge, by="x")
    assert graph.objects(subject="ice") == ["db", "rails"]


def _merges(*pairs: tuple[str, str]) -> Merges:
    def mention(written: str) -> Mention:
        key, _, type_ = written.partition("/")
        return Mention(key, type_ or None)

    return Merges(Merge("default", mention(name), mention(into)) for name, into in pairs)


def _written(key: str, type_: str | None) -> str:
    return key if type_ is None else f"{key}/{type_}"


_GOD_AND_PLANET = (("mercury/god", "hermes"), ("mercury/planet", "mercury planet"))


@pytest.mark.parametrize(
    ("pairs", "asked", "names"),
    [
        ([("a", "b")], "a", ["a", "b"]),
        ([("a", "b")], "c", ["c"]),
        ([("a", "b"), ("b", "c"), ("d", "c")], "d", ["d", "a", "b", "c"]),
        (_GOD_AND_PLANET, "hermes", ["hermes", "mercury/god"]),
        (_GOD_AND_PLANET, "mercury/god", ["mercury/god", "hermes"]),
        (_GOD_AND_PLANET, "mercury/band", ["mercury/band"]),
        (
            [("mercury/god", "hermes"), ("mercure", "mercury/planet")],
            "mercure",
            ["mercure", "mercury/planet"],
        ),
        ([("mercury/god", "mercury/deity")], "mercury/god", ["mercury/god", "mercury/deity"]),
        ([("mercury/god", "mercury/deity")], "mercury/deity", ["mercury/deity", "mercury/god"]),
        ([("a", "b"), ("b/god", "hermes"), ("b/planet", "star")], "hermes", ["hermes", "a/god", "b/god"]),
        ([("a", "b"), ("b/god", "hermes")], "a/god", ["a/god", "b/god", "hermes"]),
        ([("a", "b")], "a/god", ["a/god", "b/god"]),
        ([("y", "m"), ("m/god", "hermes"), ("m/planet", "star")], "star", ["star", "m/planet", "y/planet"]),
    ],
)  # fmt: skip
def test_names_of_an_entity_keep_to_its_type(
    pairs: list[tuple[str, str]], asked: str, names: list[str]
) -> None:
    key, _, type_ = asked.partition("/")
    for order in (pairs, [*reversed(pairs)]):
        found = _merges(*order).names(EntityName(key, None, type_ or None))
        assert [_written(name.key, name.type) for name in found] == names


@pytest.mark.parametrize(
    ("pairs", "mention", "entity"),
    [
        ([("a", "b"), ("b", "c")], "a", "c"),
        ([("a", "b")], "a/god", "b"),
        ([("a", "b")], "c", "c"),
        (_GOD_AND_PLANET, "mercury/god", "hermes"),
        (_GOD_AND_PLANET, "mercury/planet", "mercury planet"),
        (_GOD_AND_PLANET, "mercury/band", "mercury/band"),
        (_GOD_AND_PLANET, "mercury", "mercury"),
        ([("mercury/god", "hermes")], "mercury", "hermes"),
        ([("mercure", "mercury/planet")], "mercury", "mercury/planet"),
        ([("mercure", "mercury/planet")], "mercury/god", "mercury/god"),
        ([("mercury/god", "mercury/deity")], "mercury/god", "mercury/deity"),
        ([("mercury", "mercury/deity")], "mercury", "mercury/deity"),
        ([("a/god", "b"), ("a", "c")], "a/god", "b"),
    ],
)
def test_a_mention_is_taken_for_one_entity(
    pairs: list[tuple[str, str]], mention: str, entity: str
) -> None:
    key, _, type_ = mention.partition("/")
    found = _merges(*pairs).entity("default", Mention(key, type_ or None))
    assert _written(found.key, found.type) == entity
    assert _merges(*pairs).entity("other", Mention(key)) == Mention(key)


def test_types_of_one_name_never_stand_for_one_another_in_a_circle(graph: Graph) -> None:
    _merge(graph, "a", "a", type_="god", into_type="deity")
    with pytest.raises(Conflict, match="already"):
        _merge(graph, "a", "a", type_="deity", into_type="god")
    _merge(graph, "hermes", "a", into_type="planet")
    with pytest.raises(Conflict, match="already"):
        _merge(graph, "a", "hermes", type_="planet")
