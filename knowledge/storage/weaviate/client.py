"""Connections to Weaviate, and its errors translated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import weaviate
from weaviate.classes.init import AdditionalConfig, Auth, GrpcConfig, Timeout
from weaviate.exceptions import (
    WeaviateBaseError,
    WeaviateConnectionError,
    WeaviateGRPCUnavailableError,
    WeaviateStartUpError,
    WeaviateTimeoutError,
)

from knowledge.errors import IndexUnavailable, InvalidConfiguration
from knowledge.storage.weaviate.address import WeaviateAddress

_RECONNECT: Final = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),  # by itself it waits up to 120 s for a server
)


def client_arguments(address: WeaviateAddress, *, timeout_s: float) -> dict[str, Any]:
    """Keyword arguments of the client's ``connect_to_custom`` and its async twin."""
    http = urlsplit(address.url)
    host, _, port = address.grpc.rpartition(":")
    if http.scheme not in ("http", "https") or not http.hostname or not port.isdigit():
        raise InvalidConfiguration(
            "KNOWLEDGE_WEAVIATE_URL must be http(s)://host:port"
            " and KNOWLEDGE_WEAVIATE_GRPC host:port"
        )
    secure = http.scheme == "https"
    return {
        "http_host": http.hostname,
        "http_port": http.port or (443 if secure else 80),
        "http_secure": secure,
        "grpc_host": host,
        "grpc_port": int(port),
        "grpc_secure": secure,
        "auth_credentials": Auth.api_key(address.api_key) if address.api_key else None,
        "additional_config": AdditionalConfig(
            timeout=Timeout(init=10, query=timeout_s, insert=120),
            grpc_config=GrpcConfig(channel_options=list(_RECONNECT)),
        ),
        # The health check has a one-second time-out of its own that a busy server misses.
        "skip_init_checks": True,
    }


def connect(address: WeaviateAddress) -> weaviate.WeaviateClient:
    with translated():
        return weaviate.connect_to_custom(**client_arguments(address, timeout_s=60))


def open_async(address: WeaviateAddress) -> weaviate.WeaviateAsyncClient:
    """An unconnected asynchronous client."""
    return weaviate.use_async_with_custom(**client_arguments(address, timeout_s=10))


async def require_listening(address: WeaviateAddress, *, timeout_s: float = 0.2) -> None:
    """Raise `IndexUnavailable` when nothing listens at the address of queries."""
    host, _, port = address.grpc.rpartition(":")
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError) as error:
        raise IndexUnavailable(f"Weaviate cannot be reached at {address.grpc}") from error
    writer.close()


@contextmanager
def translated() -> Iterator[None]:
    """Driver errors that mean "no server" become `IndexUnavailable`."""
    try:
        yield
    except (
        WeaviateConnectionError,
        WeaviateStartUpError,
        WeaviateGRPCUnavailableError,
        WeaviateTimeoutError,
    ) as error:
        raise IndexUnavailable(f"Weaviate cannot be reached: {_one_line(error)}") from error
    except WeaviateBaseError as error:
        raise IndexUnavailable(f"Weaviate refused the request: {_one_line(error)}") from error
    except OSError as error:
        raise IndexUnavailable(f"Weaviate cannot be reached: {error}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
