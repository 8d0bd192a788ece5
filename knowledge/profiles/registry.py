"""The embedding profiles of one installation, loaded when they are first needed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from knowledge.errors import InvalidConfiguration, ProfileMismatch
from knowledge.profiles.minilm import load_minilm
from knowledge.profiles.onnx import OnnxEmbedder
from knowledge.profiles.profile import Embedder
from knowledge.profiles.remote import LiteLLMEmbedder
from knowledge.settings import ProfileSettings, Settings

BUILT_IN: Final[Mapping[str, ProfileSettings]] = {
    "minilm@1": ProfileSettings(provider="minilm", dimension=384),
}

_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,61}@[1-9][0-9]{0,8}")

Loader = Callable[[str, ProfileSettings, Path], Embedder]


class Profiles:
    """The built-in profiles and those of the settings. Safe to use from several threads."""

    def __init__(self, settings: Settings, cache_dir: Path) -> None:
        """Read the definitions; nothing is loaded.

        Raises `InvalidConfiguration` for a key that is not ``name@version``, that is built in
        already, or whose definition lacks what its provider needs.
        """
        for key, definition in settings.profiles.items():
            _require_valid(key, definition)
        self._cache_dir = cache_dir
        self._definitions = {**BUILT_IN, **settings.profiles}
        self._locks = {key: threading.Lock() for key in self._definitions}
        self._loaded: dict[str, Embedder] = {}

    def names(self) -> tuple[str, ...]:
        """Every key, sorted."""
        return tuple(sorted(self._definitions))

    def definition(self, key: str) -> ProfileSettings:
        """The definition of ``key``; `InvalidConfiguration` lists the valid keys."""
        if key not in self._definitions:
            raise InvalidConfiguration(
                f"unknown embedding profile {key[:80]!r}: use one of {', '.join(self.names())}",
                profile=key,
            )
        return self._definitions[key]

    def is_local(self, key: str) -> bool:
        """Whether ``key`` embeds on this machine; asks its definition, loads nothing."""
        return self.definition(key).provider != "litellm"

    def get(self, key: str) -> Embedder:
        """The embedder of ``key``, loaded at the first call and kept.

        Raises `InvalidConfiguration` for an unknown key, `ModelUnavailable` when the model cannot
        be loaded (the next call tries again), `ProfileMismatch` when it has another dimension
        than its definition says.
        """
        definition = self.definition(key)
        with self._locks[key]:
            if key not in self._loaded:
                embedder = _LOADERS[definition.provider](key, definition, self._cache_dir)
                _require_dimension(embedder, definition)
                self._loaded[key] = embedder
            return self._loaded[key]


def _require_valid(key: str, definition: ProfileSettings) -> None:
    if not _KEY.fullmatch(key):
        raise InvalidConfiguration(
            f"embedding profile {key[:80]!r} is not valid: write name@version, the name of a-z, "
            "0-9 and '-', the version a whole number from 1, such as minilm@2"
        )
    if key in BUILT_IN:
        raise InvalidConfiguration(
            f"embedding profile {key} is built in and immutable: give yours another version"
        )
    needed = {"onnx": "folder", "litellm": "model"}.get(definition.provider)
    if needed and not getattr(definition, needed):
        raise InvalidConfiguration(
            f"embedding profile {key}: provider {definition.provider} needs `{needed}`"
        )


def _require_dimension(embedder: Embedder, definition: ProfileSettings) -> None:
    found = embedder.profile.dimension
    if definition.dimension not in (None, found):
        raise ProfileMismatch(
            f"profile {embedder.profile.key}: the model has {found} dimensions, its definition "
            f"says {definition.dimension}: correct the definition, or the model it names",
            found=found,
            expected=definition.dimension,
        )


def _load_onnx(key: str, definition: ProfileSettings, _cache_dir: Path) -> Embedder:
    return OnnxEmbedder(key, definition, Path(definition.folder or "").expanduser())


def _load_remote(key: str, definition: ProfileSettings, _cache_dir: Path) -> Embedder:
    return LiteLLMEmbedder(key, definition)


_LOADERS: Final[Mapping[str, Loader]] = {
    "minilm": load_minilm,
    "onnx": _load_onnx,
    "litellm": _load_remote,
}
