from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Build, Index, Knowledge

Options = tuple[str, ...]


def test_create_prints_the_collection_and_list_shows_it(knowledge: Knowledge, tenant: str) -> None:
    place = ("--tenant", tenant, "--project", "p1", "--collection", "notes")
    made = knowledge("collections", "create", *place, "--profile", "none", "--json").json
    assert made == {
        "collectionId": made["collectionId"],
        "tenantId": tenant,
        "collection": "notes",
        "projectId": "p1",
        "kind": "documents",
        "embeddingProfile": None,
        "allowRemote": False,
        "headRevision": 0,
        "indexes": [],
    }
    listed = knowledge("collections", "list", "--tenant", tenant, "--json").json
    assert listed == {"collections": [made]}
    assert "nothing yet" in knowledge("collections", "list", "--tenant", tenant).out


def test_list_shows_the_revisions_that_serve(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, index: Index
) -> None:
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    done = knowledge("collections", "list", "--tenant", tenant)
    assert done.out.splitlines()[1].endswith("1 (full_text, metadata), 3 chunks")
    (found,) = knowledge("collections", "list", "--tenant", tenant, "--json").json["collections"]
    assert [(i["kind"], i["revision"], i["state"]) for i in found["indexes"]] == [
        ("full_text", 1, "Ready"),
        ("metadata", 1, "Ready"),
    ]


def test_a_second_collection_of_the_name_is_refused(knowledge: Knowledge, docs: Options) -> None:
    failure = knowledge("collections", "create", *docs, "--profile", "none").failure
    assert failure.endswith("already has a collection docs")


@pytest.mark.parametrize("verb", ["create", "set"])
def test_an_unknown_profile_lists_the_known_ones(
    knowledge: Knowledge, docs: Options, tenant: str, verb: str
) -> None:
    place = ("--tenant", tenant, "--collection", "docs", "--profile", "bge@1")
    project = ("--project", "p1") if verb == "create" else ()
    failure = knowledge("collections", verb, *place, *project).failure
    assert failure == "unknown embedding profile 'bge@1': use one of minilm@1"


def test_a_profile_set_before_the_first_publish_needs_no_rebuild(
    knowledge: Knowledge, docs: Options, tenant: str
) -> None:
    place = ("--tenant", tenant, "--collection", "docs")
    done = knowledge("collections", "set", *place, "--profile", "minilm@1", "--json").json
    assert (done["embeddingProfile"], done["rebuild"]) == ("minilm@1", None)
    again = knowledge("collections", "set", *place, "--profile", "minilm@1")
    assert again.out.endswith("Nothing to rebuild.\n")


def test_setting_a_profile_asks_for_a_rebuild_once(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, index: Index
) -> None:
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    place = ("--tenant", tenant, "--collection", "docs")
    done = knowledge("collections", "set", *place, "--profile", "minilm@1", "--json").json
    asked = done["rebuild"]
    assert (asked["state"], asked["reason"]) == ("requested", "profile")
    assert asked["embeddingProfileVersion"] == "minilm@1"
    again = knowledge("rebuild", *place, "--json").json
    assert again["rebuildId"] == asked["rebuildId"]
    refused = knowledge("rebuild", *place, "--profile", "none").failure
    assert refused == (
        f"rebuild {asked['rebuildId']} to minilm@1 of collection docs is at work:"
        " wait for it, or cancel it"
    )


def test_a_rebuild_serves_with_the_new_profile(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, index: Index, build: Build
) -> None:
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    place = ("--tenant", tenant, "--collection", "docs")
    knowledge("collections", "set", *place, "--profile", "minilm@1")
    build(tenant, "docs")
    (found,) = knowledge("collections", "list", "--tenant", tenant, "--json").json["collections"]
    vector = [entry for entry in found["indexes"] if entry["kind"] == "vector"]
    assert [entry["embeddingProfileVersion"] for entry in vector] == ["minilm@1"]


def test_a_collection_that_gives_up_its_profile_stops_serving_the_old_vectors(
    knowledge: Knowledge, folder: Path, tenant: str, index: Index, build: Build
) -> None:
    place = ("--tenant", tenant, "--collection", "docs")
    knowledge("publish", folder, *place, "--project", "p1", "--profile", "minilm@1")
    index(tenant, "docs")
    knowledge("collections", "set", *place, "--profile", "none")
    build(tenant, "docs")
    (found,) = knowledge("collections", "list", "--tenant", tenant, "--json").json["collections"]
    assert [(i["kind"], i["revision"]) for i in found["indexes"]] == [
        ("full_text", 2),
        ("metadata", 2),
    ]
    made = knowledge("clients", "create", "--tenant", tenant, "--projects", "p1", "--json").json
    asked = ("--tenant", tenant, "--project", "p1", "--as", made["clientId"], "--json")
    states = {
        pin: next(
            (leg["state"], leg["indexRevision"])
            for leg in knowledge("search", "lease", *asked, "--pin", f"docs={pin}").json["legs"]
            if leg["leg"] == "vector"
        )
        for pin in (1, 2)
    }
    assert states == {1: ("ok", 1), 2: ("skipped", None)}


def test_a_profile_whose_definition_changed_is_refused(
    knowledge: Knowledge, docs: Options, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE__PROFILES__MINE@1__PROVIDER", "minilm")
    place = ("--tenant", tenant, "--collection", "docs")
    assert knowledge("collections", "set", *place, "--profile", "mine@1").code == 0
    assert knowledge("collections", "set", *place, "--profile", "none").code == 0
    monkeypatch.setenv("KNOWLEDGE__PROFILES__MINE@1__QUERY_PREFIX", "query: ")
    failure = knowledge("collections", "set", *place, "--profile", "mine@1").failure
    assert "mine@1 is not what it was when first used" in failure
    assert "mine@2" in failure


def test_a_profile_with_another_dimension_than_declared_is_refused(
    knowledge: Knowledge, docs: Options, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE__PROFILES__WIDE@1__PROVIDER", "minilm")
    monkeypatch.setenv("KNOWLEDGE__PROFILES__WIDE@1__DIMENSION", "768")
    place = ("--tenant", tenant, "--collection", "docs")
    failure = knowledge("collections", "set", *place, "--profile", "wide@1").failure
    assert "the model has 384 dimensions, its definition says 768" in failure


def test_a_remote_profile_needs_the_permission(
    knowledge: Knowledge, docs: Options, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE__PROFILES__FAR@1__PROVIDER", "litellm")
    monkeypatch.setenv("KNOWLEDGE__PROFILES__FAR@1__MODEL", "ollama/embedding")
    monkeypatch.setenv("KNOWLEDGE__PROFILES__FAR@1__API_BASE", "http://127.0.0.1:1")
    place = ("--tenant", tenant, "--collection", "docs")
    failure = knowledge("collections", "set", *place, "--profile", "far@1").failure
    assert "--allow-remote" in failure
    done = knowledge("collections", "set", *place, "--allow-remote", "--json")
    assert done.json["allowRemote"] is True
    assert done.json["rebuild"] is None


def test_set_without_anything_to_set_is_a_usage_error(
    knowledge: Knowledge, docs: Options, tenant: str
) -> None:
    done = knowledge("collections", "set", "--tenant", tenant, "--collection", "docs")
    assert done.code == 2
    assert "say what to set" in done.err


def test_an_unknown_and_another_tenants_collection_are_the_same_line(
    knowledge: Knowledge, docs: Options, tenant: str
) -> None:
    allow = ("--allow-remote",)
    mine = knowledge("collections", "set", "--tenant", tenant, "--collection", "x", *allow)
    other = knowledge("collections", "set", "--tenant", "other", "--collection", "docs", *allow)
    assert mine.failure == "there is no collection x"
    assert other.failure == "there is no collection docs"
