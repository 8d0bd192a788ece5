"""Whether a Weaviate server answers."""

from __future__ import annotations

import httpx

from knowledge.errors import IndexUnavailable
from knowledge.storage.weaviate.address import WeaviateAddress


def server_version(address: WeaviateAddress, *, timeout_s: float = 5.0) -> str:
    """The server's version, e.g. ``1.39.3``. Raises `IndexUnavailable`."""
    key = address.api_key
    try:
        answer = httpx.get(
            f"{address.url}/v1/meta",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=timeout_s,
            trust_env=False,
        )
        answer.raise_for_status()
        return str(answer.json()["version"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise IndexUnavailable(
            f"Weaviate cannot be reached at {address.url}: {error or type(error).__name__}"
        ) from error
