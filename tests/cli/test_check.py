"""``knowledge check``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knowledge.model.collection import Collection
from knowledge.publishing.publish import PublishRequest, publish
from knowledge.runtime import Runtime
from knowledge.storage.postgres import generations, inbox
from knowledge.storage.snapshots import read_snapshot
from tests.cli.conftest import Knowledge, write_feed
from tests.publication import collection_of, publish_documents

DOCUMENTS = [{"id": str(n), "text": f"page {n} of the handbook"} for n in range(4)]


@pytest.fixture
def collection(runtime: Runtime, tenant: str) -> Collection:
    made = collection_of(runtime, tenant)
    publish_documents(runtime, made, DOCUMENTS)
    return runtime.collection(tenant, made.slug)


def _lose_an_item(runtime: Runtime, collection: Collection) -> str:
    with runtime.app.tenant(collection.tenant_id) as connection:
        generation = generations.serving_generation(connection, collection)
    assert generation is not None
    lost = next(iter(runtime.index.items(generation))).object_id
    runtime.index.delete(generation, [lost])
    return str(lost)


def test_a_sound_collection_prints_a_line_a_check_and_a_total(
    knowledge: Knowledge, collection: Collection
) -> None:
    done = knowledge("check", "-t", collection.tenant_id, "-c", "docs")
    assert (done.code, done.err) == (0, "")
    header, *lines, _blank, total = done.out.splitlines()
    assert header.split() == ["STATUS", "COLLECTION", "CHECK", "FAILING", "SECONDS", "IDS"]
    assert {line.split()[0] for line in lines} == {"pass"}
    assert {line.split()[1] for line in lines} == {f"{collection.tenant_id}/docs"}
    assert total.startswith(f"{len(lines)} checks: {len(lines)} passed in ")


def test_a_lost_item_exits_with_1_and_names_it(
    knowledge: Knowledge, runtime: Runtime, collection: Collection
) -> None:
    lost = _lose_an_item(runtime, collection)
    done = knowledge("check", "-t", collection.tenant_id, "--suite", "hybrid_index")
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if "no_item_is_lost" in line]
    assert line.startswith("fail") and lost in line
    assert "3 failed" in done.out.splitlines()[-1]


def test_json_prints_one_object_a_check(
    knowledge: Knowledge, runtime: Runtime, collection: Collection
) -> None:
    lost = _lose_an_item(runtime, collection)
    done = knowledge("check", "-t", collection.tenant_id, "--suite", "hybrid_index", "--json")
    assert done.code == 1
    found = {check["name"]: check for check in json.loads(done.out)["checks"]}
    check = found["no_item_is_lost"]
    assert check["seconds"] >= 0
    assert check["sample"][0]["object_id"] == lost
    assert check | {"seconds": 0, "sample": []} == {
        "tenantId": collection.tenant_id,
        "collection": "docs",
        "suite": "hybrid_index",
        "name": "no_item_is_lost",
        "description": "The index holds every chunk version that it must hold.",
        "severity": "error",
        "status": "fail",
        "failingRows": 1,
        "sample": [],
        "reason": None,
        "subject": f"{collection.tenant_id}.docs",
        "seconds": 0,
    }


def test_a_warning_exits_with_0(
    knowledge: Knowledge, runtime: Runtime, collection: Collection
) -> None:
    with runtime.owner.transaction() as connection:
        connection.execute(
            "update inbox set state = 'rejected' where collection_id = %s",
            [collection.collection_id],
        )
    done = knowledge("check", "-t", collection.tenant_id, "--suite", "collection")
    assert done.code == 0
    assert "1 warned" in done.out.splitlines()[-1]


def test_a_pending_snapshot_is_checked_before_the_clock_takes_it(
    knowledge: Knowledge, runtime: Runtime, collection: Collection, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "feed.jsonl", {"id": "9", "text": "page nine"})
    publish(runtime, collection, PublishRequest([feed], "p1"))
    (event,) = inbox.pending(runtime.app, collection)
    address = ("check", "-t", collection.tenant_id, "--suite", "snapshot_chunks")
    assert knowledge(*address).code == 0
    (file,) = read_snapshot(Path(event.payload["manifest"])).parquet_files
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    done = knowledge(*address)
    assert done.code == 1
    assert "snapshot_matches_its_manifest" in done.out
    assert "does not have the checksum its manifest names" in done.out


# --- checks of one's own -----------------------------------------------------------------

OWN_YAML = """engine: postgres
models:
  - name: chunks
    id_columns: [path]
    columns:
      - name: path
        tests:
          - expression: {name: no_page_3, expression: "path NOT LIKE '%3%'"}
"""
OWN_SQL = """-- engine: parquet
-- id_columns: [object_id]
SELECT object_id FROM index_items JOIN expected_items USING (object_id) WHERE NOT is_visible
"""


def test_checks_of_ones_own_run_on_the_engine_that_they_name(
    knowledge: Knowledge, collection: Collection, tmp_path: Path
) -> None:
    (tmp_path / "own.yml").write_text(OWN_YAML)
    (tmp_path / "every_item_is_visible.sql").write_text(OWN_SQL)
    done = knowledge("check", "-t", collection.tenant_id, "--select", tmp_path, "--json")
    checks = json.loads(done.out)["checks"]
    found = {check["name"]: (check["status"], check["sample"]) for check in checks}
    assert done.code == 1
    assert found["every_item_is_visible"] == ("pass", [])
    assert found["no_page_3"][0] == "fail"
    assert len(found["no_page_3"][1]) == 1
    assert {check["suite"] for check in checks} == {"selected"}


def test_a_check_that_cannot_run_says_why_and_exits_with_1(
    knowledge: Knowledge, collection: Collection, tmp_path: Path
) -> None:
    (tmp_path / "own.sql").write_text("-- engine: postgres\nSELECT * FROM clients")
    done = knowledge("check", "-t", collection.tenant_id, "--select", tmp_path / "own.sql")
    assert done.code == 1
    assert 'UndefinedTable: relation "clients" does not exist' in done.out
    assert "1 could not run" in done.out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("own.yml", "engine: mysql\nmodels: []\n", "own.yml:1: unknown engine 'mysql'; valid: par"),
        ("own.sql", "-- engine: pg\nSELECT 1\n", "own.sql:1: unknown engine 'pg'; valid: parquet"),
        ("own.yml", "models: [{name: t, test: []}]", "own.yml:1: unknown key 'test' of a model"),
        ("own.txt", "", "not a check file; valid: a folder, .yml, .yaml, .sql"),
    ],
)
def test_a_check_file_with_a_mistake_is_wrong_usage_with_file_and_line(
    knowledge: Knowledge, collection: Collection, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    done = knowledge("check", "-t", collection.tenant_id, "--select", tmp_path / name)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1


# --- what is asked for -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "docs"], "--collection needs --tenant"),
        (["--suite", "indexes"], "invalid choice: 'indexes'"),
        (["--select", "/nowhere.yml"], "does not exist"),
    ],
)
def test_wrong_usage_exits_with_2_and_one_line(
    knowledge: Knowledge, arguments: list[str], message: str
) -> None:
    done = knowledge("check", *arguments)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_an_unknown_collection_is_one_line(knowledge: Knowledge, tenant: str) -> None:
    assert "nowhere" in knowledge("check", "-t", tenant, "-c", "nowhere").failure


@pytest.mark.parametrize("suite", [(), ("--suite", "collection")])
def test_an_unknown_tenant_is_one_line(knowledge: Knowledge, suite: tuple[str, ...]) -> None:
    assert (
        "there is no tenant acmee with a collection"
        in knowledge("check", "-t", "acmee", *suite).failure
    )


def test_a_tenant_without_collections_is_one_line(knowledge: Knowledge, tenant: str) -> None:
    failure = knowledge("check", "-t", tenant).failure
    assert f"there is no tenant {tenant} with a collection" in failure


def test_without_an_installation_nothing_is_started(
    knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWLEDGE_HOME", str(tmp_path))
    assert "there is no installation" in knowledge("check").failure
    assert list(tmp_path.iterdir()) == []


def test_every_collection_of_a_tenant_is_checked(
    knowledge: Knowledge, runtime: Runtime, collection: Collection
) -> None:
    other = collection_of(runtime, collection.tenant_id, "other")
    publish_documents(runtime, other, DOCUMENTS)
    done = knowledge("check", "-t", collection.tenant_id, "--suite", "collection", "--json")
    assert {check["collection"] for check in done.json["checks"]} == {"docs", "other"}


def test_before_the_first_publish_there_is_nothing_wrong(
    knowledge: Knowledge, docs: tuple[str, ...], tenant: str
) -> None:
    assert docs
    done = knowledge("check", "-t", tenant, "--suite", "hybrid_index")
    assert (done.code, done.out) == (0, "Nothing to check yet.\n")
