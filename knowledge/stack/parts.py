"""The parts of the stack: what each is called, how it starts, how it shows that it is well.

`parts_of` is the one list; the supervisor, ``knowledge status`` and ``knowledge down`` follow it.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

import httpx
import psutil  # type: ignore[import-untyped]

from knowledge.errors import Unavailable
from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.dagster_instance import (
    DATABASE_VARIABLE,
    code_server_socket,
    workspace_file,
)
from knowledge.stack.process import MARK
from knowledge.stack.servers import ServerAddresses
from knowledge.storage.postgres.probe import oldest_daemon_heartbeat, server_version

PROBE_TIMEOUT_S: Final = 2.0
HEARTBEAT_TOLERANCE_S: Final = 90.0  # Dagster's daemons report every 30 s
WATCHED_DAEMONS: Final = ("SENSOR", "QUEUED_RUN_COORDINATOR")


@dataclass(frozen=True, slots=True)
class StackContext:
    """What the parts need to know to start and to be asked."""

    home: Home
    settings: Settings
    addresses: ServerAddresses
    dagster_database_url: str
    api_port: int
    dagster_port: int

    @property
    def api_url(self) -> str:
        host = self.settings.stack.host
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.api_port}"

    @property
    def dagster_url(self) -> str:
        return f"http://127.0.0.1:{self.dagster_port}"


@dataclass(frozen=True, slots=True)
class Part:
    """One part. ``probe`` gets the context and the part's process id, returns the version of
    what answers, and raises `Unavailable`. ``command`` is None for the servers, which are
    started (and shared) by `running_servers`."""

    name: str
    url: Callable[[StackContext], str | None]
    probe: Callable[[StackContext, int | None], str]
    after: tuple[str, ...] = ()
    command: Callable[[StackContext], list[str]] | None = None
    start_timeout_s: float = 60.0


# --- how the parts start ------------------------------------------------------------------


def part_environment(context: StackContext) -> dict[str, str]:
    """The caller's environment, the two homes, and the mark by which left-overs are found."""
    return dict(os.environ) | {
        "KNOWLEDGE_HOME": str(context.home.root),
        "DAGSTER_HOME": str(context.home.dagster_dir),
        DATABASE_VARIABLE: context.dagster_database_url,
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "PYTHONUNBUFFERED": "1",
        MARK: context.home.installation_id,
    }


def _api_command(context: StackContext) -> list[str]:
    return [
        *(sys.executable, "-m", "retrieval_api"),
        *("--host", context.settings.stack.host, "--port", str(context.api_port)),
    ]


def _code_server_command(context: StackContext) -> list[str]:
    path = code_server_socket(context.home)
    path.unlink(missing_ok=True)  # of a server that was killed
    return [
        *(sys.executable, "-m", "dagster", "api", "grpc", "--socket", str(path)),
        *("-m", "orchestration.definitions", "--location-name", "knowledge"),
    ]


def _webserver_command(context: StackContext) -> list[str]:
    return [
        *(sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1"),
        *("-p", str(context.dagster_port), "-w", str(workspace_file(context.home))),
    ]


def _daemon_command(context: StackContext) -> list[str]:
    workspace = workspace_file(context.home)
    return [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace)]


# --- how the parts are asked --------------------------------------------------------------


def _probe_postgres(context: StackContext, _pid: int | None) -> str:
    return server_version(context.addresses.database_admin_url, timeout_s=PROBE_TIMEOUT_S)


def _probe_weaviate(context: StackContext, _pid: int | None) -> str:
    address = context.addresses.weaviate
    assert address is not None  # else it is no part
    return _get_version(
        f"{address.url}/v1/meta",
        "version",
        headers={"Authorization": f"Bearer {address.api_key}"} if address.api_key else {},
    )


def _probe_api(context: StackContext, _pid: int | None) -> str:
    """The port may be another installation's by now, which must not be taken for this one."""
    answer = _get(f"{context.api_url}/healthz")
    if answer.get("installation") != context.home.installation_id:
        raise Unavailable(f"another installation answers at {context.api_url}")
    return str(answer.get("version"))


def _probe_code_server(context: StackContext, _pid: int | None) -> str:
    """It listens once it has loaded the definitions."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PROBE_TIMEOUT_S)
        try:
            connection.connect(str(code_server_socket(context.home)))
        except OSError as error:
            raise Unavailable(str(error)) from error
    return version("dagster")


def _probe_webserver(context: StackContext, _pid: int | None) -> str:
    return _get_version(f"{context.dagster_url}/server_info", "dagster_webserver_version")


def _probe_daemon(context: StackContext, pid: int | None) -> str:
    """A heartbeat counts when it is recent and the process that runs now has written it."""
    beat = oldest_daemon_heartbeat(
        context.dagster_database_url, WATCHED_DAEMONS, timeout_s=PROBE_TIMEOUT_S
    )
    if beat is None or (datetime.now(UTC) - beat).total_seconds() > HEARTBEAT_TOLERANCE_S:
        raise Unavailable("no recent heartbeat")
    try:
        started = psutil.Process(pid).create_time() if pid else None
    except psutil.Error:
        started = None
    if started is None or beat.timestamp() < started:
        raise Unavailable("no heartbeat since it was started")
    return version("dagster")


def _get_version(url: str, field: str, *, headers: dict[str, str] | None = None) -> str:
    answer = _get(url, headers=headers)
    if field not in answer:
        raise Unavailable("gives an answer of another program")
    return str(answer[field])


def _get(url: str, *, headers: dict[str, str] | None = None) -> dict[str, Any]:
    try:
        answer = httpx.get(url, headers=headers, timeout=PROBE_TIMEOUT_S, trust_env=False)
        answer.raise_for_status()
        return dict(answer.json())
    except httpx.HTTPStatusError as error:
        raise Unavailable(f"answers {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise Unavailable(str(error) or type(error).__name__) from error
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable("gives an answer of another program") from error


_PARTS: Final = (
    Part(
        name="postgres",
        url=lambda context: context.addresses.database_admin_url,
        probe=_probe_postgres,
        start_timeout_s=20.0,
    ),
    Part(
        name="weaviate",
        url=lambda context: context.addresses.weaviate.url if context.addresses.weaviate else None,
        probe=_probe_weaviate,
        start_timeout_s=20.0,
    ),
    Part(
        name="api",
        url=lambda context: context.api_url,
        probe=_probe_api,
        after=("postgres", "weaviate"),
        command=_api_command,
    ),
    Part(
        name="dagster-code-server",
        url=lambda context: None,
        probe=_probe_code_server,
        after=("postgres", "weaviate"),
        command=_code_server_command,
        start_timeout_s=120.0,
    ),
    Part(
        name="dagster-webserver",
        url=lambda context: context.dagster_url,
        probe=_probe_webserver,
        after=("dagster-code-server",),
        command=_webserver_command,
        start_timeout_s=120.0,
    ),
    Part(
        name="dagster-daemon",
        url=lambda context: None,
        probe=_probe_daemon,
        after=("dagster-code-server",),
        command=_daemon_command,
        start_timeout_s=120.0,
    ),
)


def parts_of(settings: Settings) -> tuple[Part, ...]:
    """The parts that an installation with these settings has, servers first."""
    absent = set() if settings.uses_weaviate else {"weaviate"}
    return tuple(
        replace(part, after=tuple(name for name in part.after if name not in absent))
        for part in _PARTS
        if part.name not in absent
    )
