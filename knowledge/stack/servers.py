"""The servers of a home: shared by everything that uses them, stopped by the last one out.

Each user holds a shared lock on ``run/servers.lock``; starting and leaving happen under
an exclusive lock on ``run/start.lock``. The kernel releases both when a user is killed, so
the next one adopts what runs. External servers (settings) are used as they are.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit, urlunsplit

from knowledge.errors import StackError
from knowledge.home import Home, write_json
from knowledge.settings import Settings
from knowledge.stack.cache import cache_folder
from knowledge.stack.postgres import (
    admin_url,
    find_postgres,
    is_postgres_ready,
    start_postgres,
    stop_postgres,
)
from knowledge.stack.process import ProcessId
from knowledge.stack.weaviate import (
    becomes_ready,
    find_weaviate,
    start_weaviate,
    stop_weaviate,
    weaviate_api_key,
)
from knowledge.storage.weaviate.address import WeaviateAddress
from knowledge.storage.weaviate.binary import obtain_weaviate

Progress = Callable[[str], None]
DEFAULT_GRPC_PORT: Final = 50051
MINIMUM_FREE_BYTES: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """Where PostgreSQL (as administrator) answers, and Weaviate where it is the backend."""

    database_admin_url: str
    postgres_embedded: bool
    weaviate: WeaviateAddress | None = None


def without_password(url: str) -> str:
    """The URL with ``***`` in place of a password, to be shown."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{place}"))


def silent(_line: str) -> None:
    """A progress that shows nothing."""


@contextmanager
def running_servers(
    home: Home, settings: Settings, progress: Progress = silent
) -> Iterator[ServerAddresses]:
    """Have the home's servers run for the length of the block, starting what does not.

    Raises `StackError` with one line that quotes the server's log and says what to do.
    """
    home.prepare()
    if settings.database_url and not _embeds_weaviate(settings):
        yield _addresses(home, settings)
        return
    with (home.run_dir / "servers.lock").open("a") as users:
        try:
            with _starting(home):
                fcntl.flock(users, fcntl.LOCK_SH)
                addresses = _ensure(home, settings, progress)
            yield addresses
        finally:
            with _starting(home):
                _leave(home, users)


def ensure_servers(home: Home, settings: Settings, progress: Progress = silent) -> ServerAddresses:
    """Start again what has crashed. For a caller that is inside `running_servers`."""
    with _starting(home):
        return _ensure(home, settings, progress)


def stop_servers(home: Home) -> None:
    """Stop the embedded servers, whoever uses them."""
    with _starting(home):
        _stop(home)


def stop_unused_servers(home: Home) -> bool:
    """Stop what a killed user left running; False when somebody uses the servers."""
    with _starting(home), (home.run_dir / "servers.lock").open("a") as users:
        return _leave(home, users)


def embedded_processes(home: Home, settings: Settings) -> dict[str, ProcessId | None]:
    """The running process of each embedded server; None for one that does not run."""
    processes: dict[str, ProcessId | None] = {}
    if not settings.database_url:
        processes["postgres"] = find_postgres(home)
    if _embeds_weaviate(settings):
        server = find_weaviate(home)
        processes["weaviate"] = server.process if server else None
    return processes


def current_addresses(home: Home, settings: Settings) -> ServerAddresses | None:
    """The addresses of the servers that run now; None when an embedded one does not."""
    if None in embedded_processes(home, settings).values():
        return None
    return _addresses(home, settings)


def _embeds_weaviate(settings: Settings) -> bool:
    return settings.uses_weaviate and not settings.weaviate_url


@contextmanager
def _starting(home: Home) -> Iterator[None]:
    with (home.run_dir / "start.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _ensure(home: Home, settings: Settings, progress: Progress) -> ServerAddresses:
    starts: dict[str, Callable[[], None]] = {}
    if not settings.database_url and not is_postgres_ready(home):
        starts["postgres"] = lambda: _start_postgres(home, progress)
    if _embeds_weaviate(settings) and not _has_weaviate(home):
        binary = obtain_weaviate(cache_folder(), progress)
        starts["weaviate"] = lambda: _start_weaviate(home, settings, binary, progress)
    if starts:
        _require_space(home)
        _together(starts)
    addresses = _addresses(home, settings)
    _publish(home, addresses)
    return addresses


def _together(starts: dict[str, Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(starts)) as pool:
        futures: list[Future[None]] = [pool.submit(start) for start in starts.values()]
    for future in futures:
        future.result()


def _start_postgres(home: Home, progress: Progress) -> None:
    first = "" if home.postgres_dir.exists() else ", creating the data folder (about 5 s)"
    progress(f"postgres: starting{first}")
    start_postgres(home)


def _start_weaviate(home: Home, settings: Settings, binary: Path, progress: Progress) -> None:
    progress("weaviate: starting (about 5 s)")
    start_weaviate(home, settings.stack, binary)


def _has_weaviate(home: Home) -> bool:
    """Whether it runs. It may still be starting, for a user who was killed meanwhile, or busy."""
    server = find_weaviate(home)
    if server is None:
        return False
    if becomes_ready(server):
        return True
    stop_weaviate(server.process)
    return False


def _leave(home: Home, users: IO[str]) -> bool:
    fcntl.flock(users, fcntl.LOCK_UN)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    _stop(home)
    return True


def _stop(home: Home) -> None:
    (home.run_dir / "servers.json").unlink(missing_ok=True)
    stops: dict[str, Callable[[], None]] = {}
    if weaviate := find_weaviate(home):
        stops["weaviate"] = lambda: _require_ended("Weaviate", stop_weaviate(weaviate.process))
    if postgres := find_postgres(home):
        stops["postgres"] = lambda: _require_ended("PostgreSQL", stop_postgres(postgres))
    if stops:
        _together(stops)


def _require_ended(name: str, ended: bool) -> None:
    if not ended:
        raise StackError(f"{name} does not end, not even when killed: look at its process")


def _addresses(home: Home, settings: Settings) -> ServerAddresses:
    return ServerAddresses(
        database_admin_url=settings.database_url or admin_url(home),
        postgres_embedded=not settings.database_url,
        weaviate=_weaviate_address(home, settings) if settings.uses_weaviate else None,
    )


def _weaviate_address(home: Home, settings: Settings) -> WeaviateAddress:
    if settings.weaviate_url:
        url = settings.weaviate_url.rstrip("/")
        grpc = settings.weaviate_grpc or f"{urlsplit(url).hostname}:{DEFAULT_GRPC_PORT}"
        return WeaviateAddress(url, grpc, settings.weaviate_api_key or None)
    server = find_weaviate(home)
    if server is None:
        raise StackError("Weaviate ended just after it started: see logs/weaviate.log")
    return WeaviateAddress(server.url, server.grpc, weaviate_api_key(home))


def _publish(home: Home, addresses: ServerAddresses) -> None:
    """For people and other programs; this one asks the servers' own records."""
    # Secrets stay out of the file of addresses.
    weaviate = addresses.weaviate
    shown = {
        "database_admin_url": without_password(addresses.database_admin_url),
        "postgres_embedded": addresses.postgres_embedded,
        **({"weaviate_url": weaviate.url, "weaviate_grpc": weaviate.grpc} if weaviate else {}),
    }
    with suppress(OSError):
        write_json(home.run_dir / "servers.json", shown, mode=0o600)


def _require_space(home: Home) -> None:
    free = shutil.disk_usage(home.root).free
    if free < MINIMUM_FREE_BYTES:
        raise StackError(
            f"only {free // 1_000_000} MB are free on the disk of {home.root}: "
            f"free at least {MINIMUM_FREE_BYTES // 1_000_000} MB or move KNOWLEDGE_HOME"
        )
