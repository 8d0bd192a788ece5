"""The built-in checks of a staged snapshot: a good one passes, each fault is found by its check."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_like_checks import CheckOutcome, Status, builtin_checks, open_parquet, run_checks

Row = dict[str, Any]
CHECKS = builtin_checks("snapshot_chunks")
TEXT, TEXTS = pa.string(), pa.list_(pa.string())
SCHEMA: dict[str, pa.DataType] = {
    "chunk_id": TEXT,
    "source_id": TEXT,
    "path": TEXT,
    "anchor": TEXT,
    "title": TEXT,
    "text": TEXT,
    "kind": TEXT,
    "language": TEXT,
    "tags": TEXTS,
    "metadata": TEXT,
    "line_start": pa.int32(),
    "line_end": pa.int32(),
    "acl": TEXTS,
    "updated_at": pa.timestamp("us", tz="UTC"),
    "source_version": TEXT,
}
MANIFEST: dict[str, pa.DataType] = {
    "source_id": TEXT,
    "source_version": TEXT,
    "mode": TEXT,
    "chunk_count": pa.int64(),
}


def _chunk(number: int, **changed: Any) -> Row:
    return {
        "chunk_id": str(uuid.UUID(int=number)),
        "source_id": "docs" if number % 2 else "code",
        "path": f"guide/{number}.md",
        "anchor": "Bookings",
        "title": "Bookings",
        "text": f"Booking {number} is cancelled by its owner.",
        "kind": "document" if number % 2 else "code",
        "language": None,
        "tags": ["guide"],
        "metadata": '{"owner": "ops"}',
        "line_start": 1,
        "line_end": 4,
        "acl": None,
        "updated_at": datetime(2026, 1, 1, tzinfo=UTC),
        "source_version": "v1",
    } | changed


def _good() -> tuple[list[Row], list[Row]]:
    variants: list[Row] = [
        {"line_start": None, "line_end": None, "updated_at": None, "title": ""},
        {"acl": [], "metadata": "{}", "tags": []},
        {"acl": ["user:ann", "group:ops"], "language": "en"},
        {"line_start": 7, "line_end": 7, "text": "x" * 100_000},
    ]
    chunks = [_chunk(number, **variant) for number, variant in enumerate(variants)]
    manifest = [
        {"source_id": "docs", "source_version": "v1", "mode": "full", "chunk_count": 2},
        {"source_id": "code", "source_version": "v1", "mode": "delta", "chunk_count": 2},
    ]
    return chunks, manifest


def _run(folder: Path, chunks: list[Row], manifest: list[Row]) -> list[CheckOutcome]:
    path = folder / "chunks-0.parquet"
    pq.write_table(pa.Table.from_pylist(chunks, schema=pa.schema(SCHEMA)), path)
    sources = pa.Table.from_pylist(manifest, schema=pa.schema(MANIFEST))
    with open_parquet({"chunks": [path]}, tables={"manifest_sources": sources}) as connection:
        return run_checks(CHECKS, connection)


def _found(outcomes: list[CheckOutcome]) -> dict[str, Status]:
    return {o.check.name: o.status for o in outcomes if o.status is not Status.PASS}


def test_a_good_snapshot_passes_every_check(tmp_path: Path) -> None:
    outcomes = _run(tmp_path, *_good())
    assert len(outcomes) == len(CHECKS)
    assert _found(outcomes) == {}


def test_an_empty_delta_passes_every_check(tmp_path: Path) -> None:
    source = {"source_id": "docs", "source_version": "v2", "mode": "delta", "chunk_count": 0}
    assert _found(_run(tmp_path, [], [source])) == {}


def test_a_snapshot_without_sources_and_chunks_passes_every_check(tmp_path: Path) -> None:
    assert _found(_run(tmp_path, [], [])) == {}


def _changed(**values: Any) -> Callable[[list[Row], list[Row]], None]:
    return lambda chunks, manifest: chunks[1].update(values)


def _declared(**values: Any) -> Callable[[list[Row], list[Row]], None]:
    return lambda chunks, manifest: manifest[1].update(values)


def _copied(times: int, **values: Any) -> Callable[[list[Row], list[Row]], None]:
    def add(chunks: list[Row], manifest: list[Row]) -> None:
        chunks += [_chunk(number, source_id="docs") | values for number in range(100, 100 + times)]
        manifest[0]["chunk_count"] += times

    return add


COUNT, ORPHAN = "declared_chunk_count_equals_rows", "relationships_chunks_source_id"
FAULTS: list[tuple[Callable[[list[Row], list[Row]], None], set[str]]] = [
    (_changed(chunk_id=None), {"not_null_chunks_chunk_id", "chunk_id_is_a_uuid"}),
    (_changed(chunk_id=""), {"chunk_id_is_a_uuid"}),
    (_changed(chunk_id=str(uuid.UUID(int=0))), {"unique_chunks_chunk_id"}),
    (_changed(source_id=None), {"not_null_chunks_source_id", "source_id_not_empty", COUNT}),
    (_changed(source_id=""), {"source_id_not_empty", ORPHAN, COUNT}),
    (_changed(source_id="elsewhere"), {ORPHAN, COUNT}),
    (_changed(source_id="code"), {COUNT}),
    (_changed(path=None), {"not_null_chunks_path", "path_not_empty"}),
    (_changed(path=""), {"path_not_empty"}),
    (_changed(text="x" * 100_001), {"text_within_100000_characters"}),
    (_changed(kind=None), {"not_null_chunks_kind"}),
    (_changed(kind="Document"), {"accepted_values_chunks_kind"}),
    (_changed(line_start=0), {"line_range_is_sane"}),
    (_changed(line_start=5), {"line_range_is_sane"}),
    (_changed(line_start=None), {"line_range_is_sane"}),
    (_changed(line_end=None), {"line_range_is_sane"}),
    (_changed(metadata=None), {"metadata_is_a_json_object"}),
    (_changed(metadata="[1]"), {"metadata_is_a_json_object"}),
    (_changed(metadata="{'a': 1}"), {"metadata_is_a_json_object"}),
    (_changed(acl=["group:ops", "ops"]), {"acl_entries_name_a_user_or_group"}),
    (_changed(acl=["*"]), {"acl_entries_name_a_user_or_group"}),
    (_changed(acl=[None]), {"acl_entries_name_a_user_or_group"}),
    (_changed(acl=["agroup:ops"]), {"acl_entries_name_a_user_or_group"}),
    (_changed(acl=["group:"]), {"acl_entries_name_a_user_or_group"}),
    (_declared(source_id=None), {"not_null_manifest_sources_source_id", ORPHAN, COUNT}),
    (_declared(source_id="docs"), {"unique_manifest_sources_source_id", ORPHAN}),
    (_declared(source_version=None), {"not_null_manifest_sources_source_version"}),
    (_declared(mode=None), {"not_null_manifest_sources_mode"}),
    (_declared(mode="partial"), {"accepted_values_manifest_sources_mode"}),
    (_declared(chunk_count=None), {"not_null_manifest_sources_chunk_count",
                                   "chunk_count_not_negative", COUNT}),
    (_declared(chunk_count=-1), {"chunk_count_not_negative", COUNT}),
    (_declared(chunk_count=3), {COUNT}),
]  # fmt: skip

ALSO_TOO_SHORT: list[tuple[Callable[[list[Row], list[Row]], None], set[str]]] = [
    (_changed(text=None), {"not_null_chunks_text", "text_not_empty",
                           "text_within_100000_characters"}),
    (_changed(text=""), {"text_not_empty"}),
]  # fmt: skip

WARNINGS: list[tuple[Callable[[list[Row], list[Row]], None], set[str]]] = [
    (_changed(text=" x "), {"text_of_3_characters_or_more"}),
    (_copied(3, title=""), {"most_chunks_have_a_title"}),
    (_copied(3, title=None), {"most_chunks_have_a_title"}),
    (_copied(51, text="All rights reserved."), {"text_repeated_at_most_50_times"}),
    (lambda chunks, manifest: manifest.append(
        {"source_id": "gone", "source_version": "v1", "mode": "full", "chunk_count": 0}
    ), {"full_source_has_chunks"}),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "names"), FAULTS)
def test_a_fault_blocks_by_exactly_its_checks(
    tmp_path: Path, fault: Callable[[list[Row], list[Row]], None], names: set[str]
) -> None:
    chunks, manifest = _good()
    fault(chunks, manifest)
    assert _found(_run(tmp_path, chunks, manifest)) == dict.fromkeys(names, Status.FAIL)


@pytest.mark.parametrize(("fault", "names"), ALSO_TOO_SHORT)
def test_a_missing_text_blocks_and_also_warns_of_a_short_one(
    tmp_path: Path, fault: Callable[[list[Row], list[Row]], None], names: set[str]
) -> None:
    chunks, manifest = _good()
    fault(chunks, manifest)
    expected = dict.fromkeys(names, Status.FAIL) | {"text_of_3_characters_or_more": Status.WARN}
    assert _found(_run(tmp_path, chunks, manifest)) == expected


@pytest.mark.parametrize(("oddity", "names"), WARNINGS)
def test_an_oddity_warns_and_does_not_block(
    tmp_path: Path, oddity: Callable[[list[Row], list[Row]], None], names: set[str]
) -> None:
    chunks, manifest = _good()
    oddity(chunks, manifest)
    outcomes = _run(tmp_path, chunks, manifest)
    assert _found(outcomes) == dict.fromkeys(names, Status.WARN)
    assert not any(outcome.is_blocking for outcome in outcomes)


def test_exactly_half_empty_titles_and_fifty_repeats_are_no_oddity(tmp_path: Path) -> None:
    chunks, manifest = _good()
    _copied(2, title="")(chunks, manifest)
    assert _found(_run(tmp_path, chunks, manifest)) == {}
    chunks, manifest = _good()
    _copied(50, text="All rights reserved.")(chunks, manifest)
    assert _found(_run(tmp_path, chunks, manifest)) == {}


def test_every_built_in_check_has_a_snapshot_that_it_finds_fault_with() -> None:
    found = {
        name for cases in (FAULTS, ALSO_TOO_SHORT, WARNINGS) for _, names in cases for name in names
    }
    assert {check.name for check in CHECKS} == found


def test_a_sample_names_the_faulty_chunk_and_shows_nothing_else(tmp_path: Path) -> None:
    chunks, manifest = _good()
    chunks[1]["metadata"] = "the secret"
    outcomes = _run(tmp_path, chunks, manifest)
    (bad,) = [outcome for outcome in outcomes if outcome.is_blocking]
    assert bad.sample == ({"chunk_id": chunks[1]["chunk_id"]},)
    assert "the secret" not in repr(bad)
