"""A caller finds what is theirs, today, and nothing else: over HTTP, from real indexes."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.model.collection import Collection
from knowledge.model.scope import ADMIN, READ
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from tests.publication import collection_of, publish_documents
from tests.retrieval_api.conftest import CallerFactory
from tests.retrieval_api.service import BASE, Caller, assert_problem


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    return collection_of(runtime, tenant)


def _document(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "text": f"a lease is renewed {name}", **fields}


# --- ACLs -------------------------------------------------------------------------------


def test_a_chunk_is_shown_to_those_its_acl_names(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant, groups=["eng"])
    documents = [
        _document("everyone"),
        _document("nobody", acl=[]),
        _document("eng", acl=["group:eng"]),
        _document("ops", acl=["group:ops"]),
        _document("eng-ops", acl=["group:eng-ops", "group:en", "group:ENG"]),
        _document("me", acl=[f"user:{reader.client_id}"]),
        _document("another", acl=["user:client-1", "group:" + reader.client_id]),
        _document("ops-or-eng", acl=["group:ops", "group:eng"]),
    ]
    publish_documents(runtime, collection, documents)
    assert set(reader.paths("lease")) == {"everyone", "eng", "me", "ops-or-eng"}
    assert set(caller_factory(tenant).paths("lease")) == {"everyone"}


def test_source_and_chunk_must_both_allow(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    for source, acl in (("open", None), ("closed", ()), ("eng", ("group:eng",))):
        documents = [
            _document(f"{source}/open"),
            _document(f"{source}/ops", acl=["group:ops"]),
            _document(f"{source}/none", acl=[]),
        ]
        publish_documents(runtime, collection, documents, source=source, acl=acl)
    seen = {
        groups: set(caller_factory(tenant, groups=groups).paths("lease"))
        for groups in ((), ("eng",), ("ops",), ("eng", "ops"))
    }
    assert seen == {
        (): {"open/open"},
        ("eng",): {"open/open", "eng/open"},
        ("ops",): {"open/open", "open/ops"},
        ("eng", "ops"): {"open/open", "open/ops", "eng/open", "eng/ops"},
    }


def test_changed_permissions_act_on_the_next_request_for_pins_too(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    publish_documents(runtime, collection, [_document("a")])
    publish_documents(runtime, collection, [_document("b")], source="s2")
    reader = caller_factory(tenant, groups=["eng"])

    def seen() -> tuple[set[str], set[str]]:
        now, pinned = reader.paths("lease"), reader.paths("lease", pinnedRevisions={"docs": 1})
        return set(now), set(pinned)

    assert seen() == ({"a", "b"}, {"a"})
    catalogue.set_source_acl(runtime.app, collection, "s1", ("group:ops",))
    assert seen() == ({"b"}, set())
    catalogue.change_client(runtime.owner, reader.client_id, groups=["ops"])
    assert seen() == ({"a", "b"}, {"a"})
    catalogue.change_client(runtime.owner, reader.client_id, groups=[])
    assert seen() == ({"b"}, set())
    catalogue.set_source_acl(runtime.app, collection, "s1", None)
    assert seen() == ({"a", "b"}, {"a"})
    catalogue.change_client(runtime.owner, reader.client_id, projects=["p2"])
    assert_problem(reader.try_search("lease"), 404, "there is no project p1")


def test_a_deleted_source_is_gone_on_the_next_request_for_pins_too(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    publish_documents(runtime, collection, [_document("a")])
    publish_documents(runtime, collection, [_document("b")], source="s2")
    reader = caller_factory(tenant, scopes=(READ, ADMIN))
    event = {
        "specversion": "1.0",
        "id": "deletion",
        "source": "urn:test",
        "type": "SourceDeleted",
        "data": {"tenantId": tenant, "collectionId": "docs", "sourceId": "s1"},
    }
    assert reader.post(f"{BASE}/events", event).status_code == 202
    assert reader.paths("lease") == ["b"]
    assert reader.paths("lease", pinnedRevisions={"docs": 1}) == []
    assert reader.get(f"{BASE}/collections").json()["collections"][0]["sources"] == ["s2"]


def test_a_chunk_acl_that_is_taken_back_hides_every_stored_revision(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    publish_documents(runtime, collection, [_document("a"), _document("b")])
    publish_documents(runtime, collection, [_document("a", acl=["group:ops"]), _document("b")])
    for pins in ({}, {"docs": 1}, {"docs": 2}):
        assert reader.paths("lease", pinnedRevisions=pins) == ["b"]


def test_a_source_published_after_the_index_served_is_not_shown_before_it_is_indexed(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    publish_documents(runtime, collection, [_document("a")])
    publish_documents(runtime, collection, [_document("b")], source="s2")
    assert reader.paths("lease", pinnedRevisions={"docs": 1}) == ["a"]
    assert set(reader.paths("lease")) == {"a", "b"}


# --- look-alikes ------------------------------------------------------------------------


def test_tenants_projects_and_sources_with_alike_names_never_mix(
    runtime: Runtime, tenant: str, caller_factory: CallerFactory
) -> None:
    tenants = (tenant, f"{tenant}-eu", f"eu-{tenant}")
    for name in tenants:
        docs = collection_of(runtime, name)
        for project in ("p1", "p1-eu"):
            catalogue.ensure_project(runtime.owner, name, project)
            for source in ("s1", "s1-private"):
                place = f"{name}/{project}/{source}"
                publish_documents(
                    runtime,
                    docs,
                    [_document(place)],
                    source=f"{source}@{project}",
                    project_id=project,
                )
    for name in tenants:
        for project in ("p1", "p1-eu"):
            reader = caller_factory(name, projects=[project])
            sources = ("s1", "s1-private")
            assert set(reader.paths("lease")) == {f"{name}/{project}/{s}" for s in sources}
            for source in sources:
                filters = {"sourceId": f"{source}@{project}"}
                assert reader.paths("lease", filters=filters) == [f"{name}/{project}/{source}"]
            for other in ("p1", "p1-eu", "p"):
                if other != project:
                    assert_problem(reader.try_search("lease", projectId=other), 404)


def test_sources_that_differ_by_a_space_or_by_case_are_different_sources(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    sources = ("s1", "s1 ", " s1", "S1", "s1.", "s1\\", "s1\\20;")
    for source in sources:
        publish_documents(runtime, collection, [_document(f"[{source}]")], source=source)
    for source in sources:
        answer = reader.try_search("lease", filters={"sourceId": source}).json()
        assert [c["citation"]["path"] for c in answer["candidates"]] == [f"[{source}]"]
        assert answer["foreignDropped"] == 0


@pytest.mark.parametrize("named", ["slug", "id"])
def test_a_foreign_collection_and_an_unknown_one_get_the_same_answer(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory, named: str
) -> None:
    reader = caller_factory(tenant)
    theirs = collection_of(runtime, f"{tenant}-eu", "theirs")
    other = collection_of(runtime, tenant, "other", project_id="p2")
    publish_documents(runtime, theirs, [_document("x")])
    names = {
        "unknown": "nothing" if named == "slug" else "6e8bc430-9c3a-11d9-9669-0800200c9a66",
        "tenant": theirs.slug if named == "slug" else str(theirs.collection_id),
        "project": other.slug if named == "slug" else str(other.collection_id),
    }

    def replies(name: str) -> list[tuple[int, bytes, dict[str, str]]]:
        found = [
            reader.try_search("lease", collections=[name]),
            reader.try_search("lease", pinnedRevisions={name: 1}),
            reader.get(f"{BASE}/collections/{name}/indexes"),
        ]
        return [
            (
                r.status_code,
                r.content.replace(name.encode(), b"NAME"),
                {k: v for k, v in r.headers.items() if k not in ("date", "content-length")},
            )
            for r in found
        ]

    assert replies(names["tenant"]) == replies(names["unknown"])
    assert replies(names["project"]) == replies(names["unknown"])
    assert [status for status, _, _ in replies(names["unknown"])] == [404] * 3


def test_only_collections_of_the_callers_projects_are_listed(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    collection_of(runtime, tenant, "other", project_id="p2")
    collection_of(runtime, f"{tenant}-eu", "theirs")
    publish_documents(runtime, collection, [_document("a")], acl=("group:ops",))

    def listed(reader: Caller, **params: str) -> dict[str, list[str]]:
        found = reader.get(f"{BASE}/collections", params=params).json()["collections"]
        return {entry["collection"]: entry["sources"] for entry in found}

    assert listed(caller_factory(tenant)) == {"docs": []}
    assert listed(caller_factory(tenant, groups=["ops"])) == {"docs": ["s1"]}
    both = caller_factory(tenant, projects=["p1", "p2"])
    assert listed(both) == {"docs": [], "other": []}
    assert listed(both, projectId="p2") == {"other": []}
    assert_problem(both.get(f"{BASE}/collections", params={"projectId": "p3"}), 404)


# --- pins -------------------------------------------------------------------------------


def test_a_pin_that_never_was_is_refused_and_a_collected_one_is_gone(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    reader = caller_factory(tenant)
    assert_problem(reader.try_search("lease", pinnedRevisions={"docs": 1}), 422, "no revision 1")
    publish_documents(runtime, collection, [_document("a")])
    publish_documents(runtime, collection, [_document("b")])
    assert reader.paths("lease", pinnedRevisions={"docs": 1}) == ["a"]
    assert reader.paths("lease", pinnedRevisions={str(collection.collection_id): 1}) == ["a"]
    for future in (3, 2147483646):
        response = reader.try_search("lease", pinnedRevisions={"docs": future})
        assert_problem(response, 422, f"no revision {future}", "newest is 2")
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update index_revisions set collected_at = now()"
            " where collection_id = %s and revision = 1",
            [collection.collection_id],
        )
    response = reader.try_search("lease", pinnedRevisions={"docs": 1})
    assert_problem(response, 410, "revision 1", "was collected")
    assert reader.paths("lease") == ["b"]


# --- filters ----------------------------------------------------------------------------

PATHS = (
    "src/a.md", "src/ab.md", "src/A.md", "src/a_b.md", "src/a%b.md", "src/a*b.md",
    "src/a?b.md", "src/a\\b.md", "src/a b.md", "src /a.md", "src", "Src/a.md", "docs/src/a.md",
    "src/é.md", "src/e\u0301.md", "src/\U0001f600.md", "100%.md", "_private.md", "*.md",
)  # fmt: skip
PREFIXES = (
    *PATHS, "src/", "src/a", "src/a_", "src/a%", "src/a*", "src/a?", "src/a\\", "src/a ", "src ",
    "s", "%", "_", "*", "?", "\\", ".*", "/", " ", "src/\U0001f600", "src/e", "é",
)  # fmt: skip


@pytest.fixture(scope="module")
def paths_reader(runtime: Runtime, caller_factory: CallerFactory) -> Caller:
    collection = collection_of(runtime, "path-prefixes")
    publish_documents(runtime, collection, [{"id": p, "text": "a lease"} for p in PATHS])
    return caller_factory("path-prefixes")


@pytest.mark.parametrize("legs", [["fullText"], ["metadata"], None])
def test_a_path_prefix_is_plain_text_for_every_leg(
    paths_reader: Caller, legs: list[str] | None
) -> None:
    for prefix in PREFIXES:
        query = "lease" if legs != ["metadata"] else "md"
        fields = {} if legs is None else {"legs": legs}
        found = paths_reader.paths(query, filters={"pathPrefix": prefix}, **fields)
        expected = {path for path in PATHS if path.startswith(prefix)}
        if legs == ["metadata"]:
            expected = {path for path in expected if path.endswith(".md")}
            assert set(found) <= expected, prefix
        else:
            assert set(found) == expected, prefix


@pytest.fixture(scope="module")
def filters_reader(runtime: Runtime, caller_factory: CallerFactory) -> Caller:
    """Documents ``kind.language.tags.year``, each in two sources."""
    collection = collection_of(runtime, "filters")
    documents = []
    for language, kind in (("python", "code"), ("c", "code"), ("english", "document")):
        for tags in ([], ["adr"], ["adr", "old"], ["adr-2"], ["ADR"]):
            for year in (2024, 2025):
                name = f"{kind}.{language}.{'+'.join(tags)}.{year}"
                metadata = {"kind": kind, "language": language, "updatedAt": f"{year}-06-01"}
                documents.append(_document(name, tags=tags, metadata=metadata))
    publish_documents(runtime, collection, documents)
    publish_documents(
        runtime,
        collection,
        [_document("code.python..2025", metadata={"kind": "code"})],
        source="s2",
    )
    return caller_factory("filters")


@pytest.mark.parametrize(
    ("filters", "admits"),
    [
        ({"kind": "code"}, lambda k, lang, tags, y: k == "code"),
        ({"kind": "document"}, lambda k, lang, tags, y: k == "document"),
        ({"language": "python"}, lambda k, lang, tags, y: lang == "python"),
        ({"language": "Python"}, lambda k, lang, tags, y: False),
        ({"language": "py"}, lambda k, lang, tags, y: False),
        ({"language": "python "}, lambda k, lang, tags, y: False),
        ({"tags": ["adr"]}, lambda k, lang, tags, y: "adr" in tags),
        ({"tags": ["adr", "old"]}, lambda k, lang, tags, y: {"adr", "old"} <= tags),
        ({"tags": [" adr"]}, lambda k, lang, tags, y: False),
        ({"tags": ["adr", "none"]}, lambda k, lang, tags, y: False),
        ({"tags": ["ad"]}, lambda k, lang, tags, y: False),
        ({"updatedAfter": "2025-01-01"}, lambda k, lang, tags, y: y == 2025),
        ({"updatedAfter": "2025-06-01T00:00:00Z"}, lambda k, lang, tags, y: y == 2025),
        ({"updatedAfter": "2025-06-01T00:00:01Z"}, lambda k, lang, tags, y: False),
        ({"updatedAfter": "2025-06-01T02:00:00+02:00"}, lambda k, lang, tags, y: y == 2025),
        ({"updatedAfter": "0001-01-01T00:00:00Z"}, lambda k, lang, tags, y: True),
        ({"updatedAfter": "9999-12-31T23:59:59Z"}, lambda k, lang, tags, y: False),
        ({"pathPrefix": "code.c"}, lambda k, lang, tags, y: lang == "c"),
        (
            {"kind": "code", "tags": ["adr"], "updatedAfter": "2025-01-01", "pathPrefix": "code.p"},
            lambda k, lang, tags, y: lang == "python" and "adr" in tags and y == 2025,
        ),
    ],
)
@pytest.mark.parametrize("leg", ["fullText", "metadata"])
def test_every_filter_restricts_every_leg(
    filters_reader: Caller, filters: dict[str, Any], admits: Any, leg: str
) -> None:
    def parse(path: str) -> tuple[str, str, set[str], int]:
        kind, language, tags, year = path.split(".")
        return kind, language, set(tags.split("+")) - {""}, int(year)

    scoped = {**filters, "sourceId": "s1"}
    query = "lease" if leg == "fullText" else "code document 2024 2025"
    found = filters_reader.paths(query, filters=scoped, legs=[leg])
    everything = filters_reader.paths("lease", filters={"sourceId": "s1"}, legs=["fullText"])
    assert len(everything) == 30
    expected = {path for path in everything if admits(*parse(path))}
    assert set(found) == expected if leg == "fullText" else set(found) <= expected


def test_an_unknown_source_filter_finds_nothing(filters_reader: Caller) -> None:
    for source in ("s", "S1", "s1 ", "*", "s1' or '1'='1"):
        assert filters_reader.paths("lease", filters={"sourceId": source}) == []


# --- trust ------------------------------------------------------------------------------

TIERS = ("SourceFact", "InferredFact", "AgentObservation", "UnverifiedMemory")


def test_trust_filters_before_top_k_and_orders_last(
    runtime: Runtime, collection: Collection, tenant: str, caller_factory: CallerFactory
) -> None:
    for number, tier in enumerate(TIERS):
        documents = [
            {"id": f"{tier}/{n}", "text": " ".join(["lease"] * (1 + 9 * number + n) + ["word"] * n)}
            for n in range(3)
        ]
        publish_documents(runtime, collection, documents, source=tier)
        with runtime.owner.transaction() as connection:
            connection.execute(
                "update sources set trust_tier = %s where collection_id = %s and source_id = %s",
                [tier, collection.collection_id, tier],
            )
    reader = caller_factory(tenant)
    for number, tier in enumerate(TIERS):
        answer = reader.search("lease", minTrust=tier, topK=100)
        tiers = [c["citation"]["trustTier"] for c in answer["candidates"]]
        assert tiers == [t for t in TIERS[: number + 1] for _ in range(3)]
        scores = [c["citation"]["score"] for c in answer["candidates"]]
        assert scores == sorted(scores, reverse=True)
    alone = {tier: reader.paths("lease", filters={"sourceId": tier}) for tier in TIERS}
    assert reader.paths("lease") == [path for tier in TIERS for path in alone[tier]]
