"""HTTP search against raw Weaviate, pair by pair in one run, so that a drifting machine cancels out.

The raw side embeds the query with the same model and runs the two bare Weaviate queries (nearest
vectors and BM25) concurrently, with the same filters, limit and connection; it checks no token,
reads no grants, fuses nothing and fetches no texts.

    python -m benchmarks.latency --tenant T --project P --collection C --queries FILE.jsonl
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import click
import httpx
import numpy as np
from weaviate.classes.query import MetadataQuery

from knowledge.home import Home
from knowledge.model.revision import IndexKind
from knowledge.retrieval.planning import Caller, plan_search, scope_filter
from knowledge.retrieval.request import Filters, SearchRequest
from knowledge.runtime import Runtime, open_runtime
from knowledge.stack.servers import current_addresses
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.weaviate.client import WeaviateAddress, open_async
from knowledge.storage.weaviate.schema import scope_filter as weaviate_filter
from knowledge.text.analysis import analyse

Call = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Place:
    """The collection that is asked, and the project it is asked for."""

    tenant: str
    project: str
    collection: str


@click.command()
@click.option("--tenant", required=True)
@click.option("--project", required=True)
@click.option("--collection", required=True)
@click.option("--queries", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--api", default="http://127.0.0.1:8080", show_default=True)
@click.option("--pairs", default=300, show_default=True)
@click.option("--limit", default=20, show_default=True, help="Hits of each raw query.")
@click.option("--rate", default=0.0, help="Then: requests a second for --seconds.")
@click.option("--seconds", default=60.0, show_default=True)
def main(
    tenant: str, project: str, collection: str, queries: Path, api: str, pairs: int, limit: int,
    rate: float, seconds: float,
) -> None:  # fmt: skip
    """Print p50 of both sides and their ratio; with --rate, percentiles under load."""
    place = Place(tenant, project, collection)
    texts = [json.loads(line)["text"] for line in queries.read_text().splitlines()]
    with open_runtime(Home.locate()) as runtime:
        client = catalogue.create_client(
            runtime.owner, tenant, projects=[project], groups=[], scopes=["factory.knowledge.read"]
        )
        try:
            asyncio.run(_run(runtime, client, place, texts, api, pairs, limit, rate, seconds))
        finally:
            catalogue.revoke_client(runtime.owner, client[0])


async def _run(
    runtime: Runtime, client: tuple[str, str], place: Place, texts: list[str], api: str,
    pairs: int, limit: int, rate: float, seconds: float,
) -> None:  # fmt: skip
    async with httpx.AsyncClient(base_url=api, timeout=30) as http:
        token = await http.post(
            "/oauth/token", auth=client, data={"grant_type": "client_credentials"}
        )
        http.headers["Authorization"] = f"Bearer {token.json()['access_token']}"

        async def searched(text: str) -> object:
            body = {"query": text, "projectId": place.project, "collections": [place.collection]}
            answer = await http.post("/factory/knowledge/search", json=body)
            answer.raise_for_status()
            return answer

        raw, close = await _raw(runtime, client[0], place, limit)
        for text in texts[:30]:
            await raw(text)
            await searched(text)
        times: dict[str, list[float]] = {"raw": [], "http": []}
        for number in range(pairs):
            text = texts[number % len(texts)]
            for name, call in (("raw", raw), ("http", searched)):
                times[name].append(await _timed(call, text))
        ratio = statistics.median(times["http"]) / statistics.median(times["raw"])
        paired = statistics.median(h / r for h, r in zip(times["http"], times["raw"], strict=True))
        for name, values in times.items():
            print(f"{name:5} p50 {_ms(values, 50)}  p95 {_ms(values, 95)}")
        print(f"ratio of medians {ratio:.2f}, median of pairs {paired:.2f}")
        if rate:
            await _load(searched, texts, rate, seconds)
        await close()


async def _raw(
    runtime: Runtime, client_id: str, place: Place, limit: int
) -> tuple[Call, Callable[[], Awaitable[None]]]:
    database = AsyncDatabase(runtime.urls.app_url)
    await database.open()
    plan = await plan_search(
        database,
        Caller(client_id, place.tenant),
        SearchRequest("x", place.project, (place.collection,)),
    )
    await database.close()
    served = plan.targets[0].served[IndexKind.VECTOR]
    filters = weaviate_filter(scope_filter(plan, plan.targets[0], served.revision, Filters()))
    embedder = runtime.embedder(served.generation.embedding_profile or "")
    at = current_addresses(runtime.home, runtime.settings)
    assert at is not None
    client = open_async(WeaviateAddress(at.weaviate_url, at.weaviate_grpc, at.weaviate_api_key))
    await client.connect()
    query = (
        client.collections.use(served.generation.class_name)
        .with_tenant(served.generation.backend_tenant)
        .query
    )

    async def raw(text: str) -> object:
        vector = await asyncio.to_thread(embedder.embed_query, text)
        return await asyncio.gather(
            query.near_vector(
                near_vector=vector.tolist(), filters=filters, limit=limit,
                return_metadata=MetadataQuery(distance=True), return_properties=[],
            ),
            query.bm25(
                query=" ".join(analyse(text)), query_properties=["analysed"], filters=filters,
                limit=limit, return_metadata=MetadataQuery(score=True), return_properties=[],
            ),
        )  # fmt: skip

    return raw, client.close


async def _timed(call: Call, text: str) -> float:
    started = time.perf_counter()
    await call(text)
    return time.perf_counter() - started


async def _load(call: Call, texts: list[str], rate: float, seconds: float) -> None:
    """Open loop: requests start on schedule, whether or not earlier ones have been answered."""
    total = int(rate * seconds)
    started = time.perf_counter()
    waits: list[asyncio.Task[float]] = []
    for number in range(total):
        await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
        waits.append(asyncio.create_task(_timed(call, texts[number % len(texts)])))
    done = await asyncio.gather(*waits, return_exceptions=True)
    times = [value for value in done if isinstance(value, float)]
    print(
        f"{rate:.0f}/s for {seconds:.0f} s: {total - len(times)} errors,"
        f" p50 {_ms(times, 50)}, p95 {_ms(times, 95)}, p99 {_ms(times, 99)}"
    )


def _ms(values: list[float], percentile: float) -> str:
    return f"{np.percentile(values, percentile) * 1000:.1f} ms"


if __name__ == "__main__":
    main()
