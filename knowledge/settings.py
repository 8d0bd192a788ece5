"""Configuration: ``knowledge.toml`` of the home, overridden by environment variables.

``[retrieval] default_top_k`` is ``KNOWLEDGE__RETRIEVAL__DEFAULT_TOP_K`` in the environment.
The addresses of real servers have short names of their own: KNOWLEDGE_DATABASE_URL,
KNOWLEDGE_WEAVIATE_URL, KNOWLEDGE_WEAVIATE_API_KEY, KNOWLEDGE_WEAVIATE_GRPC; and so has the
choice between them, KNOWLEDGE_VECTOR_BACKEND.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from knowledge.crash_points import require_known_place
from knowledge.errors import InvalidConfiguration
from knowledge.home import Home

PREFIX = "KNOWLEDGE__"
SHORT_NAMES = (
    "vector_backend",
    "database_url",
    "weaviate_url",
    "weaviate_api_key",
    "weaviate_grpc",
)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RetrievalSettings(Section):
    default_top_k: int = Field(
        20, ge=1, le=200, description="Candidates per index before fusion and reranking."
    )
    fusion: Literal["rrf"] = "rrf"
    rerank_profile: Literal["reranker", "none"] = "reranker"
    rerank_depth: int = Field(
        30, ge=10, le=200, description="Hits of each chunk leg whose union the blend scores."
    )
    leg_timeout_s: float = Field(0.8, gt=0, le=30)
    request_timeout_s: float = Field(2.0, gt=0, le=60)
    max_query_chars: int = Field(8192, ge=1, le=100_000)
    record_retention_days: int = Field(30, ge=1)


def _folders(value: object) -> object:
    """A list of folders as the environment writes it: ``/a:/b``."""
    return value.split(os.pathsep) if isinstance(value, str) else value


def _names(value: object) -> object:
    """A list of names as the environment writes it: ``a,b``."""
    if not isinstance(value, str):
        return value
    return [name for part in value.split(",") if (name := part.strip())]


class PublishingSettings(Section):
    max_file_bytes: int = Field(2_000_000, ge=1, description="Larger files are skipped, counted.")
    max_chunk_tokens: int = Field(220, ge=32, le=2000, description="Bound of a chunk, in words.")
    snapshot_roots: Annotated[tuple[str, ...], BeforeValidator(_folders)] = Field(
        (), description="Further folders that a manifest may lie under."
    )


class IndexingSettings(Section):
    lease_ttl_s: float = Field(30.0, gt=1)
    lease_wait_s: float = Field(120.0, ge=0)
    statistics_growth: float = Field(
        1.5, gt=1, description="Growth of a collection after which term statistics are refrozen."
    )
    flat_search_cutoff: int = Field(40_000, ge=0)
    max_attempts: int = Field(
        5, ge=1, description="Attempts at a pending event, or a rebuild, before it fails."
    )
    keep_revisions: int = Field(5, ge=1, description="Newest revisions that can be pinned.")
    keep_days: float = Field(7.0, ge=0, description="Younger revisions can be pinned as well.")
    dead_rows_share: float = Field(
        0.2, gt=0, lt=1, description="Share of an index that is history before it is built anew."
    )
    dead_rows_minimum: int = Field(20, ge=1, description="Fewer dead rows are left as they are.")


class ProfileSettings(Section):
    """An embedding profile. ``name`` and ``version`` come from its key, e.g. ``minilm@1``."""

    provider: Literal["minilm", "onnx", "litellm"]
    folder: str | None = Field(None, description="onnx: folder with model.onnx and tokenizer.json.")
    model: str | None = Field(
        None, description="litellm: model name, e.g. ollama/nomic-embed-text."
    )
    api_base: str | None = None
    api_key_env: str | None = Field(None, description="Name of the variable that holds the key.")
    dimension: int | None = Field(None, ge=1, le=8192, description="Probed; a mismatch is refused.")
    query_prefix: str = ""
    passage_prefix: str = ""
    blend_text: float = Field(0.5, ge=0, le=1, description="Weight of cosine for documents.")
    blend_code: float = Field(0.7, ge=0, le=1, description="Weight of cosine for code.")
    names_floor: float = Field(0.4, ge=-1, le=1)
    max_tokens: int = Field(256, ge=8, le=32_768)
    batch_size: int = Field(32, ge=1, le=2048)
    cost_per_million_tokens: float | None = None


class StackSettings(Section):
    host: str = "127.0.0.1"
    api_port: int | None = Field(None, description="None: 8080, or a free port when it is taken.")
    dagster_port: int | None = Field(None, description="None: 3000, or a free port.")
    weaviate_port: int | None = None
    weaviate_grpc_port: int | None = None


class SecuritySettings(Section):
    token_lifetime_s: int = Field(3600, ge=60, le=86_400)


class ExtractionSettings(Section):
    """The language model that reads facts out of offloaded turns; an OpenAI-compatible server."""

    api_base: str | None = Field(
        None, description="Such as http://127.0.0.1:11434/v1. None: the built-in extractor."
    )
    model: str | None = None
    api_key_env: str | None = Field(None, description="Name of the variable that holds the key.")
    timeout_s: float = Field(60.0, gt=0, le=600)


class MemorySettings(Section):
    embeddings: str | None = Field(
        None, description="Profile that embeds entity names; None: default_profile. Local only."
    )
    embedding_timeout_s: float = Field(
        0.15, gt=0, le=5, description="A slower model leaves recall to the names."
    )
    embedding_interval_s: float = Field(30.0, gt=0, le=3600)
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        (), description="Hosts that count as local, beside loopback and private addresses."
    )
    offload_jobs: int = Field(32, ge=1, le=1000, description="Jobs that wait at most.")
    extraction: ExtractionSettings = ExtractionSettings()


class McpSettings(Section):
    tools: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        (), description="Tools that agents are offered; none named is all of them."
    )
    read_only: bool = Field(False, description="Offer no tool that writes.")
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        (), description="Names (host or host:port) that /mcp is also asked under, behind a proxy."
    )


class Settings(Section):
    """Everything that can be configured, validated, with where the servers are."""

    retrieval: RetrievalSettings = RetrievalSettings()
    publishing: PublishingSettings = PublishingSettings()
    indexing: IndexingSettings = IndexingSettings()
    stack: StackSettings = StackSettings()
    security: SecuritySettings = SecuritySettings()
    mcp: McpSettings = McpSettings()
    memory: MemorySettings = MemorySettings()
    profiles: dict[str, ProfileSettings] = Field(default_factory=dict)
    default_profile: str = "minilm@1"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    vector_backend: Literal["weaviate", "pgvector"] = Field(
        "weaviate", description="Where the hybrid index is kept; pgvector needs no second server."
    )
    database_url: str | None = Field(None, pattern=r"^postgres(ql)?://")
    weaviate_url: str | None = None
    weaviate_api_key: str | None = None
    weaviate_grpc: str | None = Field(None, description="host:port; default is port 50051.")

    @property
    def uses_weaviate(self) -> bool:
        return self.vector_backend == "weaviate"


def load_settings(home: Home, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the home's ``knowledge.toml`` and the environment.

    Raises `InvalidConfiguration` naming the key and what it accepts.
    """
    environ = os.environ if environ is None else environ
    require_known_place(environ)
    values = _read_toml(home.config_file)
    for name, value in sorted(environ.items()):
        if name.startswith(PREFIX):
            _set(values, name.removeprefix(PREFIX).lower().split("__"), value)
    for short in SHORT_NAMES:
        if given := environ.get(f"KNOWLEDGE_{short.upper()}"):
            values[short] = given
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InvalidConfiguration(_explain(error.errors(include_url=False)[0])) from error


def _explain(error: ErrorDetails) -> str:
    place = [str(part) for part in error["loc"]]
    if error["type"] != "extra_forbidden":
        return f"configuration key {'.'.join(place)}: {error['msg']}"
    section: Any = Settings
    for part in place[:-1]:
        section = section.model_fields[part].annotation if part in section.model_fields else section
    valid = (ProfileSettings if place[0] == "profiles" else section).model_fields
    return f"unknown configuration key {'.'.join(place)}: use one of {', '.join(sorted(valid))}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfiguration(f"{path}: {error}") from error


def _set(values: dict[str, Any], keys: list[str], value: str) -> None:
    for key in keys[:-1]:
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise InvalidConfiguration(f"configuration key {'.'.join(keys)} is not a section")
    values[keys[-1]] = value
