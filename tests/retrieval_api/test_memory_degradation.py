"""A memory without its model, with a slow one, or with one that is not allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from knowledge.home import Home
from knowledge.model.scope import READ, WRITE
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from tests.crashes.conftest import ROOT
from tests.retrieval_api.memory import call, said, tell, wait_for_vectors
from tests.retrieval_api.service import Caller, caller, serving

FACT = ("billing", "OWNED_BY", "team a")


@contextmanager
def agent_of(
    home: Home,
    runtime: Runtime,
    tenant: str,
    environ: Mapping[str, str],
) -> Iterator[Caller]:
    catalogue.ensure_project(runtime.owner, tenant, "p1")
    with serving(home, runtime, wait=False, environ=environ) as url:
        yield caller(url, runtime, tenant, scopes=(READ, WRITE))


def test_without_a_model_names_answer_and_say_why(
    home: Home, runtime: Runtime, tenant: str
) -> None:
    broken = {
        "KNOWLEDGE__PROFILES__BROKEN@1__PROVIDER": "onnx",
        "KNOWLEDGE__PROFILES__BROKEN@1__FOLDER": "/nowhere",
        "KNOWLEDGE__MEMORY__EMBEDDINGS": "broken@1",
    }
    with agent_of(home, runtime, tenant, broken) as agent:
        tell(agent, FACT)
        answer = call(agent, "recall", query="who owns billing")
    assert answer["mode"] == "names"
    assert "model broken@1 is not loaded" in answer["modeReason"]
    assert said(answer) == {FACT}


def test_a_slow_model_leaves_the_names(home: Home, runtime: Runtime, tenant: str) -> None:
    with agent_of(home, runtime, tenant, {}) as agent:
        tell(agent, FACT)
        wait_for_vectors(agent)
    slow = {"KNOWLEDGE__MEMORY__EMBEDDING_TIMEOUT_S": "0.000001"}
    with agent_of(home, runtime, tenant, slow) as agent:
        answer = call(agent, "recall", query="who owns billing")
    assert answer["mode"] == "names"
    assert answer["embeddingProfileVersion"] is None
    assert "minilm@1" in answer["modeReason"]
    assert said(answer) == {FACT}


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        (
            {
                "KNOWLEDGE__PROFILES__CLOUD@1__PROVIDER": "litellm",
                "KNOWLEDGE__PROFILES__CLOUD@1__MODEL": "openai/text-embedding-3-small",
                "KNOWLEDGE__MEMORY__EMBEDDINGS": "cloud@1",
            },
            "memory.embeddings: profile cloud@1 is a remote provider",
        ),
        (
            {
                "KNOWLEDGE__MEMORY__EXTRACTION__API_BASE": "https://llm.example.org/v1",
                "KNOWLEDGE__MEMORY__EXTRACTION__MODEL": "big",
            },
            "memory.extraction.api_base: llm.example.org is not known to be local",
        ),
        (
            {"KNOWLEDGE__MEMORY__EXTRACTION__API_BASE": "http://127.0.0.1:1/v1"},
            "memory.extraction.model is missing",
        ),
        ({"KNOWLEDGE__MEMORY__EMBEDDINGS": "nothing@1"}, "unknown embedding profile 'nothing@1'"),
    ],
)
def test_a_route_that_is_not_local_ends_the_start_with_the_reason(
    home: Home, environ: dict[str, str], words: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "retrieval_api", "--port", "1"],
        cwd=ROOT,
        env={**os.environ, "KNOWLEDGE_HOME": str(home.root), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
