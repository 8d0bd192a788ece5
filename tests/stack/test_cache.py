"""Where what can be obtained again is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.stack.cache import cache_folder


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWLEDGE_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("KNOWLEDGE_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "knowledge-retrieval"
