"""Configuration: the file, the environment, and the pages that describe them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from knowledge.errors import InvalidConfiguration
from knowledge.home import Home
from knowledge.settings import SHORT_NAMES, ProfileSettings, Settings, load_settings

DOCS = Path(__file__).parents[1] / "docs"
OF_THE_ENVIRONMENT = set(SHORT_NAMES) - {"vector_backend"}


def test_a_variable_overrides_the_file(tmp_path: Path) -> None:
    (tmp_path / "knowledge.toml").write_text("[retrieval]\ndefault_top_k = 30\nrerank_depth = 40\n")
    settings = load_settings(Home(tmp_path), {"KNOWLEDGE__RETRIEVAL__DEFAULT_TOP_K": "50"})
    assert (settings.retrieval.default_top_k, settings.retrieval.rerank_depth) == (50, 40)


def test_a_variable_lists_folders_as_paths_are_listed(tmp_path: Path) -> None:
    settings = load_settings(Home(tmp_path), {"KNOWLEDGE__PUBLISHING__SNAPSHOT_ROOTS": "/a:/b"})
    assert settings.publishing.snapshot_roots == ("/a", "/b")


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("RETRIEVAL__TOP_K", "unknown configuration key retrieval.top_k: use one of default_top_k"),
        ("RETRIVAL__TOP_K", "unknown configuration key retrival: use one of database_url, default"),
        ("PROFILES__X@1__PROVIDER", "configuration key profiles.x@1.provider: Input should be"),
        ("RETRIEVAL__DEFAULT_TOP_K", "configuration key retrieval.default_top_k: Input should be"),
    ],
)
def test_a_wrong_key_is_named_with_what_would_be_right(
    tmp_path: Path, variable: str, message: str
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load_settings(Home(tmp_path), {f"KNOWLEDGE__{variable}": "wrong"})
    assert refused.value.message.startswith(message)


def test_an_unknown_vector_backend_is_refused_with_the_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load_settings(Home(tmp_path), {"KNOWLEDGE_VECTOR_BACKEND": "faiss"})
    assert "vector_backend: Input should be 'weaviate' or 'pgvector'" in refused.value.message
    chosen = load_settings(Home(tmp_path), {"KNOWLEDGE_VECTOR_BACKEND": "pgvector"})
    assert chosen.vector_backend == "pgvector"


@pytest.mark.parametrize("address", ["garbage", "host=127.0.0.1 password=hidden", "http://x"])
def test_an_address_that_is_no_url_of_postgresql_is_refused_and_not_repeated(
    tmp_path: Path, address: str
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load_settings(Home(tmp_path), {"KNOWLEDGE_DATABASE_URL": address})
    assert "database_url" in refused.value.message
    assert address not in refused.value.message


def test_every_key_is_documented_and_no_other() -> None:
    keys = set(_keys_of(Settings)) - {"profiles"}
    documented = _keys_of_table((DOCS / "operating.md").read_text())
    assert documented - {'profiles."NAME@VERSION"'} == keys - OF_THE_ENVIRONMENT
    profile = _keys_of_table((DOCS / "profiles.md").read_text())
    assert set(ProfileSettings.model_fields) - {"provider"} <= profile


def _keys_of(section: type[BaseModel]) -> Iterator[str]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (f"{name}.{key}" for key in _keys_of(kind))
        else:
            yield name


def _keys_of_table(page: str) -> set[str]:
    """Keys of the first column; `a.b`, `c` in one cell are a.b and a.c."""
    found = set()
    for cell in re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE):
        section = ""
        for key in re.findall(r"`([^`]+)`", cell):
            if "." in key:
                section = key.rpartition(".")[0] + "."
                found.add(key)
            else:
                found.add(section + key)
    return found
