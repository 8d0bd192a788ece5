"""The Dagster instance of a home: its configuration, written before Dagster starts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from knowledge.errors import StackError
from knowledge.home import Home

DATABASE_VARIABLE: Final = "KNOWLEDGE_DAGSTER_DATABASE_URL"
"""Dagster hands its configuration to child processes as arguments, which every user of the
machine can list; a variable keeps the password out of them."""

MAX_SOCKET_PATH_BYTES: Final = 100


def write_instance_config(home: Home) -> Path:
    """Write ``dagster/dagster.yaml``; whoever opens the instance sets `DATABASE_VARIABLE`."""
    home.dagster_dir.mkdir(parents=True, exist_ok=True)
    path = home.dagster_dir / "dagster.yaml"
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".dagster.yaml.")  # mode 0600
    with os.fdopen(descriptor, "w") as file:
        file.write("# Written at every start; changes are lost.\n")
        yaml.safe_dump(instance_config(), file, sort_keys=False)
    Path(name).replace(path)
    return path


def code_server_socket(home: Home) -> Path:
    """Where the server with the project's definitions listens, for this user only.

    Socket paths are limited to about a hundred bytes: a deep home gets one in a private folder
    of the system's temporary directory.
    """
    path = home.run_dir / "code.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    return Path(tempfile.gettempdir()) / f"knowledge-{home.installation_id[:12]}" / "code.sock"


def write_workspace(home: Home) -> Path:
    """Write ``dagster/workspace.yaml``: webserver and daemon share one code server.

    Left to themselves each starts its own, and the daemon a new one every minute.
    """
    socket = code_server_socket(home)
    socket.parent.mkdir(mode=0o700, exist_ok=True)
    if socket.parent.stat().st_uid != os.geteuid():
        raise StackError(f"{socket.parent} belongs to another user: remove it")
    path = workspace_file(home)
    server = {"host": "localhost", "socket": str(socket), "location_name": "knowledge"}
    path.write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}))
    return path


def workspace_file(home: Home) -> Path:
    return home.dagster_dir / "workspace.yaml"


def instance_config() -> dict[str, Any]:
    """The configuration as Dagster reads it."""
    return {
        "storage": {"postgres": {"postgres_url": {"env": DATABASE_VARIABLE}}},
        "run_coordinator": {
            "module": "dagster._core.run_coordinator.queued_run_coordinator",
            "class": "QueuedRunCoordinator",
            "config": {"dequeue_interval_seconds": 1, "max_concurrent_runs": 2},
        },
        "run_launcher": {
            "module": "dagster._core.launcher.default_run_launcher",
            "class": "DefaultRunLauncher",
        },
        "run_monitoring": {
            "enabled": True,
            "start_timeout_seconds": 120,
            "cancel_timeout_seconds": 60,
            "max_resume_run_attempts": 0,  # a killed run is replaced by its sensor, not resumed
            "poll_interval_seconds": 15,
            "free_slots_after_run_end_seconds": 30,  # else a cancelled run keeps its pool slot
        },
        "retention": {
            "sensor": {
                "purge_after_days": {
                    "skipped": 1,
                    "success": 7,
                    "failure": 30,
                    "started": 30,
                }
            },
            "schedule": {
                "purge_after_days": {
                    "skipped": 1,
                    "success": 7,
                    "failure": 30,
                    "started": 30,
                }
            },
        },
        "sensors": {"use_threads": True, "num_workers": 4},
        "schedules": {"use_threads": True, "num_workers": 2},
        "python_logs": {"python_log_level": "INFO"},
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
    }
