"""The real command as a process of its own, as coding agents start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.memory.service import FakeService, served

PAYLOADS = Path(__file__).parent / "hook_payloads"
COMMAND = str(Path(sys.executable).with_name("knowledge"))
KEY = "kk_ada-laptop_s3cr3t"


@dataclass(frozen=True)
class Ended:
    """What a hook left: its exit code, its output, and the seconds its process took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def answer(self) -> Any:
        """The one JSON document that the agent reads; the hook must have ended with 0."""
        assert self.code == 0, (self.code, self.err)
        return json.loads(self.out)

    @property
    def context(self) -> str:
        told: str = self.answer["hookSpecificOutput"]["additionalContext"]
        return told


@dataclass(frozen=True)
class Hooks:
    """Runs hooks with a state folder and a home of their own."""

    folder: Path
    service: FakeService

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    def environ(self, **more: str) -> dict[str, str]:
        told = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KNOWLEDGE_STATE_DIR": str(self.state_dir),
            "KNOWLEDGE_URL": self.service.url,
            "KNOWLEDGE_API_KEY": KEY,
        }
        return {**told, **more}

    def start(
        self, *arguments: str, environ: Mapping[str, str] | None = None, **pipes: Any
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, "memory", *arguments],
            env=self.environ(**(environ or {})),
            **{
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **pipes,
            },
        )

    def run(
        self,
        *arguments: str,
        payload: Mapping[str, Any] | bytes,
        environ: Mapping[str, str] | None = None,
    ) -> Ended:
        given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        started = time.monotonic()
        with self.start(*arguments, environ=environ) as process:
            out, err = process.communicate(given, timeout=30)
        seconds = time.monotonic() - started
        return Ended(process.returncode, out.decode(), err.decode(), seconds)

    def status(self) -> Any:
        return self.run("status", "--json", payload=b"").answer


@pytest.fixture
def service() -> Iterator[FakeService]:
    with served() as running:
        yield running


@pytest.fixture
def hooks(tmp_path: Path, service: FakeService) -> Hooks:
    return Hooks(tmp_path, service)


def recorded(name: str, **changed: Any) -> dict[str, Any]:
    """A payload as the agent sent it, with fields of this test's."""
    payload: dict[str, Any] = json.loads((PAYLOADS / f"{name}.json").read_text())
    return {**payload, **changed}
