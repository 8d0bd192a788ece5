"""What Dagster loads."""

from typing import Any

import dagster as dg

from orchestration.definitions import defs

GRAPH: dict[str, dict[str, Any]] = {
    "chunk_snapshot": {
        "deps": [],
        "group": "knowledge",
        "kinds": ["parquet", "postgres"],
        "checks": {
            "chunks_plausible": False,
            "chunks_valid": True,
            "manifest_sources_plausible": False,
            "manifest_sources_valid": True,
        },
    },
    "embeddings": {
        "deps": ["chunk_snapshot"],
        "group": "knowledge",
        "kinds": ["onnx", "parquet"],
        "checks": {"all_embeddings_valid": False, "embeddings_valid": True},
    },
    "hybrid_index": {
        "deps": ["embeddings"],
        "group": "knowledge",
        "kinds": ["hybrid"],
        "checks": {"hybrid_index_valid": True, "whole_index_valid": False},
    },
    "metadata_index": {
        "deps": ["chunk_snapshot"],
        "group": "knowledge",
        "kinds": ["postgres"],
        "checks": {},
    },
    "serving": {
        "deps": ["hybrid_index", "metadata_index"],
        "group": "knowledge",
        "kinds": ["postgres"],
        "checks": {"collection_plausible": False, "collection_valid": False},
    },
    "collected_revisions": {
        "deps": ["serving"],
        "group": "knowledge",
        "kinds": ["postgres"],
        "checks": {},
    },
}


def test_the_asset_graph_is_the_lineage_of_the_design() -> None:
    graph = defs.resolve_asset_graph()
    found = {}
    for key in sorted(graph.get_all_asset_keys()):
        node = graph.get(key)
        found[key.to_user_string()] = {
            "deps": sorted(parent.to_user_string() for parent in node.parent_keys),
            "group": node.group_name,
            "kinds": sorted(node.kinds),
            "checks": {
                check.name: graph.get_check_spec(check).blocking
                for check in sorted(node.check_keys, key=str)
            },
        }
    assert found == GRAPH


def test_every_asset_and_check_is_kept_by_collection_and_explained() -> None:
    graph = defs.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.partitions_def == dg.DynamicPartitionsDefinition(name="collections")
        assert node.description
        assert node.owners == ["team:knowledge"]
        for check in node.check_keys:
            spec = graph.get_check_spec(check)
            assert spec.description
            assert spec.partitions_def == node.partitions_def


def test_the_job_the_sensor_and_the_schedule_run_by_themselves() -> None:
    publish = defs.resolve_job_def("publish")
    sensor = defs.resolve_sensor_def("published_chunks")
    schedule = defs.resolve_schedule_def("backend_health_probe")
    assert publish.executor_def is dg.in_process_executor
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 2
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert schedule.cron_schedule == "*/2 * * * *"


def test_definitions_resolve_as_the_webserver_resolves_them() -> None:
    dg.Definitions.validate_loadable(defs)
