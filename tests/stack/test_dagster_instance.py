from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster_postgres import PostgresRunStorage

from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.dagster_instance import DATABASE_VARIABLE, write_instance_config
from knowledge.stack.servers import running_servers
from knowledge.storage.postgres.bootstrap import prepare_database


def test_dagster_accepts_the_configuration_and_keeps_its_runs_in_postgres(
    home: Home, postgres_only: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_servers(home, postgres_only) as addresses:
        urls = prepare_database(addresses.database_admin_url, home.database_key)
        write_instance_config(home)
        monkeypatch.setenv(DATABASE_VARIABLE, urls.dagster_url)
        with DagsterInstance.from_config(str(home.dagster_dir)) as instance:
            assert isinstance(instance.run_storage, PostgresRunStorage)
            assert instance.get_runs() == []
            coordinator = instance.run_coordinator
            assert isinstance(coordinator, QueuedRunCoordinator)
            assert coordinator.dequeue_interval_seconds == 1
            assert coordinator.get_run_queue_config().max_concurrent_runs == 2
            assert instance.run_monitoring_enabled
            assert instance.run_monitoring_max_resume_run_attempts == 0
            assert instance.get_settings("sensors")["use_threads"] is True
            assert not instance.telemetry_enabled


def test_no_password_stands_in_the_file_that_child_processes_get_as_arguments(home: Home) -> None:
    path = write_instance_config(home)
    assert yaml.safe_load(path.read_text())["storage"] == {
        "postgres": {"postgres_url": {"env": DATABASE_VARIABLE}}
    }


def test_the_workspace_names_the_module_of_the_assets() -> None:
    file = Path(__file__).parents[2] / "workspace.yaml"
    assert yaml.safe_load(file.read_text()) == {
        "load_from": [{"python_module": {"module_name": "orchestration.definitions"}}]
    }
