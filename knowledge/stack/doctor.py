"""What could keep the stack from running well on this machine, and what to do about it."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

import psutil  # type: ignore[import-untyped]

from knowledge.errors import KnowledgeError, Unavailable
from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.cache import cache_folder
from knowledge.stack.parts import StackContext, parts_of
from knowledge.stack.ports import is_free
from knowledge.stack.record import running_supervisor
from knowledge.stack.servers import current_addresses
from knowledge.stack.supervisor import PREFERRED_API_PORT, PREFERRED_DAGSTER_PORT
from knowledge.storage.weaviate.binary import cached_binary

Level = Literal["ok", "warn", "fail"]
GIGABYTE: Final = 10**9
OLDEST_PYTHON: Final = (3, 11)
OLDEST_WEAVIATE: Final = (1, 36)
EARLIEST_CLOCK: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``remedy`` says what to do and is empty when all is well."""

    level: Level
    subject: str
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def doctor(home: Home, settings: Settings) -> list[Finding]:
    """Look at everything; never raises for what it finds."""
    return [
        _python(),
        _disk(home),
        _memory(),
        _clock(),
        *_home(home),
        *_weaviate_binary(settings),
        _model(settings),
        *_ports(home, settings),
        *_servers(home, settings),
    ]


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("fail", "python", found, "install Python 3.11 or newer")
    return Finding("ok", "python", found)


def _disk(home: Home) -> Finding:
    folder = next(path for path in (home.root, *home.root.parents) if path.exists())
    usage = shutil.disk_usage(folder)
    found = f"{usage.free / GIGABYTE:.1f} GB free, {usage.used / usage.total:.0%} used"
    if usage.free < 0.2 * GIGABYTE:
        return Finding("fail", "disk", found, "free disk space or move KNOWLEDGE_HOME")
    if usage.free < 2 * GIGABYTE or usage.used / usage.total > 0.95:
        return Finding("warn", "disk", found, "free disk space: a server may soon refuse writes")
    return Finding("ok", "disk", found)


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    found = f"{memory.available / GIGABYTE:.1f} of {memory.total / GIGABYTE:.1f} GB available"
    if memory.available < 1.5 * GIGABYTE:
        return Finding(
            "warn",
            "memory",
            found,
            "close other programs: the stack takes about 1.5 GB",
        )
    return Finding("ok", "memory", found)


def _clock() -> Finding:
    now = datetime.now(UTC)
    found = now.isoformat(timespec="seconds")
    if now < EARLIEST_CLOCK:
        return Finding(
            "fail",
            "clock",
            found,
            "set the clock: tokens and time queries depend on it",
        )
    return Finding("ok", "clock", found)


def _home(home: Home) -> Iterator[Finding]:
    if not home.exists():
        yield Finding("ok", "home", f"{home.root} does not exist yet")
        return
    try:
        home.require_version()
        yield Finding("ok", "home", str(home.root))
    except KnowledgeError as error:
        yield Finding("fail", "home", error.message)
    secrets = home.root / "secrets.json"
    if secrets.exists() and stat.S_IMODE(secrets.stat().st_mode) & 0o077:
        yield Finding(
            "fail",
            "secrets",
            "secrets.json can be read by others",
            f"chmod 600 {secrets}",
        )


def _weaviate_binary(settings: Settings) -> Iterator[Finding]:
    if not settings.uses_weaviate:
        return
    subject = "weaviate program"
    if settings.weaviate_url:
        yield Finding("ok", subject, "not needed, KNOWLEDGE_WEAVIATE_URL is set")
    elif found := cached_binary(cache_folder()):
        yield Finding("ok", subject, str(found))
    elif shutil.which("go"):
        yield Finding("ok", subject, "not there yet, Go will compile it at first use")
    else:
        yield Finding(
            "warn",
            subject,
            "not there yet",
            "the first start fetches it; or install Go, or set KNOWLEDGE_WEAVIATE_URL",
        )


def _model(settings: Settings) -> Finding:
    profile = settings.profiles.get(settings.default_profile)
    if profile is not None and profile.provider != "minilm":
        return Finding("ok", "model", f"{settings.default_profile} ({profile.provider})")
    folders = sorted(cache_folder().glob("models/*/model.onnx"))
    if folders:
        return Finding("ok", "model", str(folders[0].parent))
    return Finding("warn", "model", "not built yet", "the first use builds it (about a minute)")


def _ports(home: Home, settings: Settings) -> Iterator[Finding]:
    if home.exists() and running_supervisor(home):
        return
    wanted = {
        "api port": (settings.stack.api_port, PREFERRED_API_PORT),
        "dagster port": (settings.stack.dagster_port, PREFERRED_DAGSTER_PORT),
    }
    for subject, (explicit, preferred) in wanted.items():
        port = explicit or preferred
        if is_free(port):
            yield Finding("ok", subject, f"{port} is free")
        elif explicit:
            yield Finding("fail", subject, f"{port} is in use", "choose another port")
        else:
            yield Finding("warn", subject, f"{port} is in use", "a free one will be taken")


def _servers(home: Home, settings: Settings) -> Iterator[Finding]:
    addresses = current_addresses(home, settings) if home.exists() else None
    if addresses is None:
        yield Finding("ok", "servers", "not running: `knowledge up` starts them")
        return
    context = StackContext(home, settings, addresses, "", 0, 0)
    for part in parts_of(settings):
        if part.command:
            continue
        try:
            version = part.probe(context, None)
        except Unavailable as error:
            yield Finding("fail", part.name, error.message, "see `knowledge status` and the logs")
            continue
        if part.name == "weaviate" and _numbers(version) < OLDEST_WEAVIATE:
            yield Finding(
                "warn",
                "weaviate",
                version,
                "before 1.36 objects not flushed yet are ranked wrongly: upgrade the server",
            )
        else:
            yield Finding("ok", part.name, version)


def _numbers(version: str) -> tuple[int, ...]:
    """``1.39.3-rc.1`` → (1, 39)."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
