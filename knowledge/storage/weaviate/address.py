"""Where a Weaviate server is. Light to import: the client is not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WeaviateAddress:
    """``url`` is http(s)://host:port, ``grpc`` host:port."""

    url: str
    grpc: str
    api_key: str | None = None
