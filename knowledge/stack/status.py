"""What runs and whether it is well: really asked, all parts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from knowledge.errors import Unavailable
from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.parts import Part, StackContext, parts_of
from knowledge.stack.record import StackRecord, read_record, running_supervisor
from knowledge.stack.servers import (
    ServerAddresses,
    current_addresses,
    embedded_processes,
    without_password,
)
from knowledge.storage.postgres.bootstrap import database_urls

CollectionStatus = Callable[[ServerAddresses], Sequence[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part as it answered just now. ``version`` is None when it did not answer."""

    name: str
    url: str | None
    healthy: bool
    version: str | None
    pid: int | None


@dataclass(frozen=True, slots=True)
class StackStatus:
    """All parts, in the order of `parts_of`, and the state of each collection."""

    parts: tuple[PartStatus, ...]
    collections: tuple[dict[str, Any], ...] = ()

    @property
    def healthy(self) -> bool:
        return all(part.healthy for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "parts": [asdict(part) for part in self.parts],
            "collections": list(self.collections),
        }


def status(
    home: Home, settings: Settings, *, collections: CollectionStatus | None = None
) -> StackStatus:
    """Ask every part, at most 2 s long. ``collections`` reports them when the servers run."""
    addresses = current_addresses(home, settings) if home.exists() else None
    record = read_record(home) if running_supervisor(home) else None
    pids = _pids(home, settings, record)
    listed = parts_of(settings)
    if addresses is None:
        return StackStatus(
            tuple(PartStatus(part.name, None, False, None, pids.get(part.name)) for part in listed)
        )
    context = StackContext(
        home=home,
        settings=settings,
        addresses=addresses,
        dagster_database_url=database_urls(
            addresses.database_admin_url, home.database_key
        ).dagster_url,
        api_port=record.api_port if record else 0,
        dagster_port=record.dagster_port if record else 0,
    )
    with ThreadPoolExecutor(len(listed)) as pool:
        asked = [pool.submit(_ask, part, context, pids.get(part.name)) for part in listed]
        parts = tuple(answer.result() for answer in asked)
    return StackStatus(parts, tuple(collections(addresses)) if collections else ())


def _ask(part: Part, context: StackContext, pid: int | None) -> PartStatus:
    is_server = part.command is None
    if not is_server and pid is None:  # another program may listen on the port
        return PartStatus(part.name, None, False, None, None)
    url = part.url(context)
    url = without_password(url) if url else None
    try:
        version = part.probe(context, pid)
    except Unavailable:
        return PartStatus(part.name, url, False, None, pid)
    return PartStatus(part.name, url, True, version, pid)


def _pids(home: Home, settings: Settings, record: StackRecord | None) -> dict[str, int]:
    processes = embedded_processes(home, settings) if home.exists() else {}
    pids = {name: process.pid for name, process in processes.items() if process}
    for name, process in (record.parts if record else {}).items():
        if process.is_alive():
            pids[name] = process.pid
    return pids
