from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from knowledge.errors import InvalidConfiguration, ModelUnavailable, ProfileMismatch
from knowledge.profiles.registry import Profiles
from knowledge.settings import Settings
from tests.profiles.test_onnx import write_folder


def profiles(cache_dir: Path, **definitions: Mapping[str, object]) -> Profiles:
    return Profiles(Settings.model_validate({"profiles": definitions}), cache_dir)


def test_the_built_in_profile_needs_no_configuration(tmp_path: Path) -> None:
    registry = profiles(tmp_path)
    assert registry.names() == ("minilm@1",)
    assert registry.definition("minilm@1").dimension == 384
    assert list(tmp_path.iterdir()) == []


def test_configured_profiles_are_listed_beside_it(tmp_path: Path) -> None:
    folder = str(write_folder(tmp_path / "tiny"))
    registry = profiles(tmp_path, **{"tiny@3": {"provider": "onnx", "folder": folder}})
    assert registry.names() == ("minilm@1", "tiny@3")
    profile = registry.get("tiny@3").profile
    assert (profile.key, profile.dimension, profile.is_local) == ("tiny@3", 2, True)


def test_threads_at_once_share_one_embedder(tmp_path: Path) -> None:
    folder = str(write_folder(tmp_path / "tiny"))
    registry = profiles(tmp_path, **{"tiny@1": {"provider": "onnx", "folder": folder}})
    with ThreadPoolExecutor(8) as pool:
        assert len({id(found) for found in pool.map(registry.get, ["tiny@1"] * 16)}) == 1


@pytest.mark.parametrize("key", ["tiny", "tiny@", "tiny@x", "tiny@0", "Tiny@1", "ti ny@1", "@1"])
def test_a_key_that_is_not_name_and_version_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidConfiguration, match="write name@version"):
        profiles(tmp_path, **{key: {"provider": "onnx", "folder": "/tmp"}})


def test_a_built_in_profile_cannot_be_redefined(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="built in and immutable"):
        profiles(tmp_path, **{"minilm@1": {"provider": "onnx", "folder": "/tmp"}})


@pytest.mark.parametrize(("provider", "needed"), [("onnx", "folder"), ("litellm", "model")])
def test_what_a_provider_needs_is_asked_for_at_start(
    tmp_path: Path, provider: str, needed: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=f"needs `{needed}`"):
        profiles(tmp_path, **{"mine@1": {"provider": provider}})


@pytest.mark.parametrize("key", ["bge@1", "none"])
def test_an_unknown_key_lists_the_valid_ones(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"use one of minilm@1"):
        profiles(tmp_path).get(key)


def test_a_declared_dimension_the_model_lacks_is_refused(tmp_path: Path) -> None:
    folder = str(write_folder(tmp_path / "tiny"))
    definition: dict[str, object] = {
        "provider": "onnx",
        "folder": folder,
        "dimension": 384,
    }
    with pytest.raises(ProfileMismatch, match="has 2 dimensions, its definition says 384"):
        profiles(tmp_path, **{"tiny@1": definition}).get("tiny@1")


def test_a_model_that_could_not_be_loaded_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    registry = profiles(tmp_path, **{"tiny@1": {"provider": "onnx", "folder": str(folder)}})
    with pytest.raises(ModelUnavailable):
        registry.get("tiny@1")
    write_folder(folder)
    assert registry.get("tiny@1").profile.dimension == 2
