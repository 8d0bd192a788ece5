"""The machine that a benchmark ran on, and the versions of what ran."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict

from knowledge.storage.weaviate.binary import VERSION

PACKAGES: Final = ("knowledge-retrieval", "weaviate-client", "psycopg", "pgvector", "onnxruntime")


class Machine(BaseModel):
    model_config = ConfigDict(frozen=True)

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    versions: dict[str, str]


@cache
def this_machine() -> Machine:
    versions = {"Python": platform.python_version(), "Weaviate": VERSION}
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        memory_bytes=int(psutil.virtual_memory().total),
        system=f"{platform.system()} {platform.release()}",
        versions=versions | {name: version(name) for name in PACKAGES},
    )


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
