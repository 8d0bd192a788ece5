from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from knowledge.errors import NotFound
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from tests.cli.conftest import Index, Knowledge, write, write_feed

Options = tuple[str, ...]
Snapshots = Callable[[str], list[Path]]
Events = Callable[[str], list[str]]


def test_publishing_a_folder_announces_one_snapshot(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, events: Events
) -> None:
    published = knowledge("publish", folder, *docs, "--json").json
    assert published.keys() == {
        *("tenantId", "projectId", "collection", "collectionId", "collectionCreated"),
        *("embeddingProfile", "publishedAs", "sourceId", "sourceVersion", "mode", "snapshotId"),
        *("sequence", "documents", "chunks", "unchanged", "deleted", "skipped", "notices"),
        *("state", "revision", "error"),
    }
    assert (published["tenantId"], published["collection"]) == (tenant, "docs")
    assert (published["sourceId"], published["publishedAs"]) == ("handbook", "documents")
    assert (published["documents"], published["chunks"], published["skipped"]) == (3, 3, {})
    assert (published["state"], published["revision"]) == ("pending", None)
    assert not published["collectionCreated"]
    assert events(tenant) == ["ChunksPublished"]


def test_the_summary_says_what_was_chosen_skipped_and_comes_next(
    knowledge: Knowledge, docs: Options, folder: Path
) -> None:
    write(folder, {"logo.png": b"\x89PNG\x00", "empty.md": ""})
    done = knowledge("publish", folder, *docs)
    assert done.code == 0
    assert done.out.startswith("Published as documents (chosen here: no --as was given)\n")
    assert "3 documents, 3 chunks" in done.out
    assert "1 binary (logo.png), 1 empty (empty.md)" in done.out
    assert "`knowledge up`" in done.out.splitlines()[-1]


def test_as_documents_is_not_called_a_choice_of_the_program(
    knowledge: Knowledge, docs: Options, folder: Path
) -> None:
    done = knowledge("publish", folder, *docs, "--as", "documents")
    assert done.out.startswith("Published as documents\n")


def test_as_code_is_a_usage_error_in_one_line(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, events: Events
) -> None:
    done = knowledge("publish", folder, *docs, "--as", "code")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "not yet" in line
    assert events(tenant) == []


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--mode", "sideways"], "'sideways' is not one of"),
        (["--acl", "eng"], "ACL entry 'eng' is not valid: write user:NAME or group:NAME"),
        (["--delete", "a.md"], "--delete needs --mode delta"),
        (["--timeout", "0"], "0"),
    ],
)
def test_a_wrong_option_is_a_usage_error(
    knowledge: Knowledge, docs: Options, folder: Path, extra: list[str], message: str
) -> None:
    done = knowledge("publish", folder, *docs, *extra)
    assert done.code == 2
    assert message in done.err


def test_tenant_project_and_collection_are_created_only_when_something_is_published(
    knowledge: Knowledge, runtime: Runtime, tmp_path: Path, folder: Path
) -> None:
    tenant = f"new-{uuid.uuid4().hex[:8]}"
    place = ("--tenant", tenant, "--project", "fresh", "--collection", "docs")
    (tmp_path / "empty").mkdir()
    failure = knowledge("publish", tmp_path / "empty", *place).failure
    assert failure == f"nothing to publish in {tmp_path}/empty: no file that is not ignored"
    assert catalogue.list_collections(runtime.owner, tenant) == []

    write_feed(tmp_path / "feed.jsonl", {"id": "1", "text": "one"}, {"id": "1", "text": "two"})
    assert "already used" in knowledge("publish", tmp_path / "feed.jsonl", *place).failure
    assert catalogue.list_collections(runtime.owner, tenant) == []

    published = knowledge("publish", folder, *place, "--json").json
    assert published["collectionCreated"]
    assert published["embeddingProfile"] == "minilm@1"


def test_files_that_are_binary_not_utf8_or_too_large_are_skipped_and_counted(
    knowledge: Knowledge, docs: Options, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE__PUBLISHING__MAX_FILE_BYTES", "1000")
    write(
        folder,
        {"a.bin": b"\x00\x01", "b.txt": "Grüße".encode("latin-1"), "c.txt": "word " * 300},
    )
    published = knowledge("publish", folder, *docs, "--json").json
    assert published["documents"] == 3
    assert published["skipped"] == {"binary": 1, "not UTF-8": 1, "too large": 1}


def test_a_malformed_line_of_a_feed_is_named_by_its_number(
    knowledge: Knowledge, docs: Options, tmp_path: Path, tenant: str, snapshots: Snapshots
) -> None:
    feed = tmp_path / "feed.jsonl"
    feed.write_text('{"id": "1", "text": "one"}\n\n{"id": "2", "text": \n')
    failure = knowledge("publish", feed, *docs).failure
    assert failure.startswith(f"{feed}, line 3: not valid JSON")
    assert snapshots(tenant) == []


def test_duplicate_ids_of_a_feed_name_both_lines_and_announce_nothing(
    knowledge: Knowledge,
    docs: Options,
    tmp_path: Path,
    tenant: str,
    snapshots: Snapshots,
    events: Events,
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl", *({"id": i, "text": i} for i in ("a", "b", "a")))
    failure = knowledge("publish", feed, *docs).failure
    assert failure == f"{feed}, line 3: id 'a' is already used in line 1"
    assert snapshots(tenant) == []
    assert events(tenant) == []


def test_an_empty_feed_is_nothing_to_publish(
    knowledge: Knowledge, docs: Options, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl")
    failure = knowledge("publish", feed, *docs).failure
    assert failure == f"nothing to publish in {feed}: it holds no document"


def test_another_projects_source_is_refused_and_leaves_no_snapshot(
    knowledge: Knowledge,
    docs: Options,
    folder: Path,
    tenant: str,
    snapshots: Snapshots,
    events: Events,
) -> None:
    knowledge("publish", folder, *docs)
    before = snapshots(tenant)
    other = ("--tenant", tenant, "--project", "p2", "--collection", "docs")
    failure = knowledge("publish", folder, *other).failure
    assert "belongs to another project: publish under another --source name" in failure
    assert snapshots(tenant) == before
    assert events(tenant) == ["ChunksPublished"]
    assert knowledge("publish", folder, *other, "--source", "mine").code == 0


def test_a_deleted_source_is_published_again_only_with_revive(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str
) -> None:
    knowledge("publish", folder, *docs)
    place = ("--tenant", tenant, "--collection", "docs")
    assert knowledge("sources", "delete", "handbook", *place).code == 0
    assert "publish with --revive" in knowledge("publish", folder, *docs).failure
    assert knowledge("publish", folder, *docs, "--revive").code == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tenant", "Acme!", "tenant 'Acme!' is not valid"),
        ("--project", "a b", "project 'a b' is not valid"),
        ("--collection", "Docs", "collection 'Docs' is not valid"),
        ("--source", "a\nb", "source names have 1 to 512 printable characters"),
        ("--root", "/nowhere", "/nowhere does not exist"),
        ("--profile", "bge@1", "unknown embedding profile 'bge@1': use one of minilm@1"),
    ],
)
def test_a_wrong_name_is_one_line(
    knowledge: Knowledge, docs: Options, folder: Path, option: str, value: str, message: str
) -> None:
    assert message in knowledge("publish", folder, *docs, option, value).failure


def test_a_path_that_does_not_exist_is_one_line(
    knowledge: Knowledge, docs: Options, tmp_path: Path
) -> None:
    failure = knowledge("publish", tmp_path / "absent", *docs).failure
    assert failure == f"{tmp_path}/absent does not exist or cannot be reached"


def test_an_unknown_id_is_no_name_for_a_new_collection(
    knowledge: Knowledge, folder: Path, tenant: str
) -> None:
    unknown = uuid.uuid4()
    place = ("--tenant", tenant, "--project", "p1", "--collection", unknown)
    assert f"there is no collection {unknown}" in knowledge("publish", folder, *place).failure


def test_a_collection_is_addressed_by_its_id_too(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str, runtime: Runtime
) -> None:
    collection_id = runtime.collection(tenant, "docs").collection_id
    place = ("--tenant", tenant, "--project", "p1", "--collection", collection_id)
    assert knowledge("publish", folder, *place, "--json").json["collection"] == "docs"


def test_without_a_loadable_model_a_new_collection_has_none_and_says_so(
    knowledge: Knowledge, folder: Path, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE__PROFILES__GONE@1__PROVIDER", "onnx")
    monkeypatch.setenv("KNOWLEDGE__PROFILES__GONE@1__FOLDER", "/nowhere/model")
    monkeypatch.setenv("KNOWLEDGE__DEFAULT_PROFILE", "gone@1")
    place = ("--tenant", tenant, "--project", "p1", "--collection", "plain")
    done = knowledge("publish", folder, *place)
    assert done.code == 0
    assert f"{tenant}/plain (new collection, no model)" in done.out
    assert "note: no model: the collection is searched by words alone" in done.out


def test_a_remote_profile_is_refused_before_any_text_could_leave(
    knowledge: Knowledge,
    folder: Path,
    tenant: str,
    runtime: Runtime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KNOWLEDGE__PROFILES__FAR@1__PROVIDER", "litellm")
    monkeypatch.setenv("KNOWLEDGE__PROFILES__FAR@1__MODEL", "openai/embedding")
    place = ("--tenant", tenant, "--project", "p1", "--collection", "far")
    failure = knowledge("publish", folder, *place, "--profile", "far@1").failure
    assert "remote" in failure
    assert "--allow-remote" in failure
    with pytest.raises(NotFound):
        runtime.collection(tenant, "far")


def test_publishing_again_keeps_the_acl_that_was_set(
    knowledge: Knowledge, docs: Options, folder: Path, tenant: str
) -> None:
    place = ("--tenant", tenant, "--collection", "docs", "--json")

    def acl() -> object:
        (source,) = knowledge("sources", "list", *place).json["sources"]
        return source["acl"]

    knowledge("publish", folder, *docs, "--acl", "group:eng, user:kim")
    assert acl() == ["group:eng", "user:kim"]
    knowledge("publish", folder, *docs)
    assert acl() == ["group:eng", "user:kim"]
    knowledge("publish", folder, *docs, "--acl", "nobody")
    assert acl() == []
    knowledge("publish", folder, *docs, "--acl", "everyone")
    assert acl() is None


def test_chunk_cuts_the_documents_of_a_feed(
    knowledge: Knowledge, docs: Options, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl", {"id": "1", "text": "A sentence of words. " * 200})
    assert knowledge("publish", feed, *docs, "--json").json["chunks"] == 1
    assert knowledge("publish", feed, *docs, "--chunk", "--json").json["chunks"] > 1


def test_the_id_of_a_feeds_document_comes_back_as_the_cited_path(
    knowledge: Knowledge, docs: Options, tmp_path: Path, tenant: str, index: Index
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl", {"id": "ticket 7/b", "text": "The pump leaks."})
    knowledge("publish", feed, *docs)
    index(tenant, "docs")
    created = knowledge("clients", "create", "--tenant", tenant, "--projects", "p1", "--json").json
    asked = ("--tenant", tenant, "--project", "p1", "--as", created["clientId"], "--json")
    (candidate,) = knowledge("search", "pump", *asked).json["candidates"]
    assert candidate["citation"]["path"] == "ticket 7/b"
    assert candidate["citation"]["lines"] is None
