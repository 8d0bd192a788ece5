"""The embedded Weaviate of a home: one process of its own, bound to this machine."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import psutil  # type: ignore[import-untyped]

from knowledge.errors import StackError
from knowledge.home import Home, write_json
from knowledge.settings import StackSettings
from knowledge.stack.ports import accepts, choose_port, free_ports, is_free
from knowledge.stack.process import (
    ProcessId,
    end,
    last_lines,
    log_size,
    spawn,
    wait_until,
)

START_TIMEOUT_S: Final = 90.0
PORT_ATTEMPTS: Final = 3
HOST: Final = "127.0.0.1"
REMEDIES: Final = {
    "no space left on device": "free disk space",
    "address already in use": "a port was taken meanwhile: try again",
    "corrupt": "the data folder is damaged: remove it and rebuild the indexes",
    "invalid checksum": "the data folder is damaged: remove it and rebuild the indexes",
}


@dataclass(frozen=True, slots=True)
class WeaviateServer:
    """A running server and the ports it listens on."""

    process: ProcessId
    http_port: int
    grpc_port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.http_port}"

    @property
    def grpc(self) -> str:
        return f"{HOST}:{self.grpc_port}"


@dataclass(frozen=True, slots=True)
class Ports:
    """HTTP and gRPC are for clients; gossip and raft also take the port after theirs."""

    http: int
    grpc: int
    gossip: int
    raft: int


def weaviate_api_key(home: Home) -> str:
    """The key of the embedded server: its gRPC port cannot be bound to one interface."""
    return hmac.new(home.database_key.encode(), b"weaviate-api-key", hashlib.sha256).hexdigest()


def start_weaviate(
    home: Home,
    settings: StackSettings,
    binary: Path,
    *,
    timeout_s: float = START_TIMEOUT_S,
) -> WeaviateServer:
    """Start the server on ``home.weaviate_dir`` and wait until it is ready.

    The ports of the run before are kept when free, so that clients reconnect after a crash.
    Raises `StackError` quoting the server's log.
    """
    previous = _recorded(home)
    words = ""
    for _ in range(PORT_ATTEMPTS):
        ports = _choose_ports(settings, previous)
        written = log_size(weaviate_log(home))
        server = _spawn(home, binary, ports)
        if becomes_ready(server, timeout_s):
            return server
        stop_weaviate(server.process)
        words = _log_words(weaviate_log(home), written)
        if "address already in use" not in words.lower():
            break
    raise StackError(_explain(home, words))


def becomes_ready(server: WeaviateServer, timeout_s: float = START_TIMEOUT_S) -> bool:
    """Wait until the server answers; False when it ends or does not within ``timeout_s``."""
    wait_until(lambda: is_ready(server) or not server.process.is_alive(), timeout_s)
    return server.process.is_alive() and is_ready(server)


def find_weaviate(home: Home) -> WeaviateServer | None:
    """The server that runs on this home, whoever started it."""
    server = _recorded(home)
    return server if server and server.process.is_alive() else None


def stop_weaviate(process: ProcessId) -> bool:
    """Ask for an orderly shutdown, which flushes; kill when it takes too long."""
    return end(process, signals=((signal.SIGTERM, 30.0), (signal.SIGKILL, 5.0)))


def is_ready(server: WeaviateServer) -> bool:
    try:
        answer = httpx.get(f"{server.url}/v1/.well-known/ready", timeout=2.0, trust_env=False)
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK and accepts(server.grpc_port)


def weaviate_log(home: Home) -> Path:
    return home.logs_dir / "weaviate.log"


def environment(home: Home, ports: Ports) -> dict[str, str]:
    """The server's whole configuration; nothing of the caller's environment but its basics."""
    basics = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    node = f"knowledge-{home.installation_id[:12]}"
    return basics | {
        "PERSISTENCE_DATA_PATH": str(home.weaviate_dir),
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": weaviate_api_key(home),
        "AUTHENTICATION_APIKEY_USERS": "knowledge",
        "AUTOSCHEMA_ENABLED": "false",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "ENABLE_MODULES": "",
        "ENABLE_API_BASED_MODULES": "false",  # its name in older servers
        "API_BASED_MODULES_DISABLED": "true",
        "DISABLE_TELEMETRY": "true",
        "QUERY_DEFAULTS_LIMIT": "20",
        "GRPC_PORT": str(ports.grpc),
        "CLUSTER_HOSTNAME": node,
        "CLUSTER_IN_LOCALHOST": "true",
        "CLUSTER_ADVERTISE_ADDR": HOST,
        "CLUSTER_BIND_ADDR": HOST,
        "CLUSTER_GOSSIP_BIND_PORT": str(ports.gossip),
        "CLUSTER_DATA_BIND_PORT": str(ports.gossip + 1),
        "RAFT_PORT": str(ports.raft),
        "RAFT_INTERNAL_RPC_PORT": str(ports.raft + 1),
        "RAFT_JOIN": f"{node}:{ports.raft}",
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_TIMEOUTS_MULTIPLIER": "1",  # the default, 5, is for networks: 5 to 10 s a start
        "GO_PROFILING_DISABLE": "true",
        "GOMEMLIMIT": f"{_memory_limit_mib()}MiB",
        "LIMIT_RESOURCES": "false",  # it would take a core and 80 % of the memory for itself
        "DISK_USE_WARNING_PERCENTAGE": "95",
        "DISK_USE_READONLY_PERCENTAGE": "99",  # the default, 90, refuses writes on full laptops
        "LOG_LEVEL": "info",
    }


def _memory_limit_mib() -> int:
    """Soft limit of the Go heap: 40 % of the machine, between 512 MiB and 8 GiB."""
    total_mib = int(psutil.virtual_memory().total) // 2**20
    return max(512, min(8192, total_mib * 2 // 5))


def _choose_ports(settings: StackSettings, previous: WeaviateServer | None) -> Ports:
    http, grpc, gossip, raft = free_ports(2, pairs=2)
    if previous and is_free(previous.http_port) and is_free(previous.grpc_port):
        http, grpc = previous.http_port, previous.grpc_port
    return Ports(
        http=choose_port(
            settings.weaviate_port,
            preferred=http,
            setting="KNOWLEDGE__STACK__WEAVIATE_PORT",
        ),
        grpc=choose_port(
            settings.weaviate_grpc_port,
            preferred=grpc,
            setting="KNOWLEDGE__STACK__WEAVIATE_GRPC_PORT",
        ),
        gossip=gossip,
        raft=raft,
    )


def _spawn(home: Home, binary: Path, ports: Ports) -> WeaviateServer:
    with suppress(FileExistsError):  # also a file, of which the server will complain
        home.weaviate_dir.mkdir(mode=0o700)
    process = spawn(
        [str(binary), "--host", HOST, "--port", str(ports.http), "--scheme", "http"],
        environment=environment(home, ports),
        log=weaviate_log(home),
    )
    # Recorded before it is ready: who is killed while waiting leaves no unknown server.
    write_json(
        _record(home),
        process.to_json() | {"httpPort": ports.http, "grpcPort": ports.grpc},
    )
    return WeaviateServer(process, ports.http, ports.grpc)


def _record(home: Home) -> Path:
    return home.run_dir / "weaviate.json"


def _recorded(home: Home) -> WeaviateServer | None:
    try:
        value: dict[str, Any] = json.loads(_record(home).read_text())
    except FileNotFoundError:
        return None
    return WeaviateServer(ProcessId.from_json(value), value["httpPort"], value["grpcPort"])


def _log_words(log: Path, since: int) -> str:
    """The last errors of the log, or else its last lines, without the JSON around them."""
    errors: list[str] = []
    other: list[str] = []
    for line in last_lines(log, count=40, limit=4000, since=since).split(" | "):
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            other.append(line[:300])
            continue
        words = " ".join(str(entry[name]) for name in ("msg", "error") if name in entry)[:300]
        (errors if entry.get("level") in ("error", "fatal", "panic") else other).append(words)
    return " | ".join((errors or other)[-3:])


def _explain(home: Home, log: str) -> str:
    known = [remedy for sign, remedy in REMEDIES.items() if sign in log.lower()]
    remedy = known[0] if known else f"see {weaviate_log(home)}"
    return f"Weaviate did not start in {home.weaviate_dir}: {log or 'it left no log'} ({remedy})"
