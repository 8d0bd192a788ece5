from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.profiles.onnx import OnnxEmbedder
from knowledge.profiles.registry import Profiles
from knowledge.settings import Settings
from knowledge.stack.cache import cache_folder

SENTENCES = (
    "who cancels a booking",
    "Induction of myelodysplasia by myeloid-derived suppressor cells.",
    "def get_user_by_id(session, user_id): return session.get(User, user_id)",
    "x",
    "A longer passage, so that texts of different lengths meet in one batch: " + "slip flow " * 30,
)


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """The real cache folder: the model is built once a machine, not once a run."""
    return cache_folder()


@pytest.fixture(scope="session")
def minilm(cache_dir: Path) -> OnnxEmbedder:
    embedder = Profiles(Settings(), cache_dir).get("minilm@1")
    assert isinstance(embedder, OnnxEmbedder)
    return embedder
