"""A process that does one step on one memory: ``python -m tests.memory.worker STEP TENANT``."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys

from knowledge.graph.ontologies import tenant_ontology
from knowledge.graph.receiving import Sender
from knowledge.home import Home
from knowledge.memory import care
from knowledge.memory.care import Chosen
from knowledge.memory.embedding import BackgroundEmbedder, NameEmbedder
from knowledge.memory.writing import Told, upsert
from knowledge.model.scope import Scope
from knowledge.profiles.registry import Profiles
from knowledge.settings import load_settings
from knowledge.stack.cache import cache_folder
from knowledge.storage.postgres.database import AsyncDatabase, Database

DATABASE_VARIABLE = "MEMORY_WORKER_DATABASE"
NAMES = [f"part {n}" for n in range(101)]
TRIPLES = [
    {"subject": a, "predicate": "NEXT_TO", "object": b} for a, b in itertools.pairwise(NAMES)
]


def sender_of(database: Database, tenant_id: str) -> Sender:
    scope = Scope(tenant_id, "p1", "agent", ())
    return Sender(scope, tenant_ontology(database, tenant_id), frozenset(), is_admin=False)


def tell(database: Database, tenant_id: str) -> None:
    told = Told(f"{tenant_id}|main", TRIPLES, "tests", "s1")
    upsert(database, sender_of(database, tenant_id), told)


def forget(database: Database, tenant_id: str) -> None:
    sender = sender_of(database, tenant_id)
    care.forget(database, sender, f"{tenant_id}|main", Chosen(everything=True))


def embed(_database: Database, _tenant_id: str) -> None:
    asyncio.run(_embed())


async def _embed() -> None:
    database = AsyncDatabase(os.environ[DATABASE_VARIABLE])
    await database.open()
    profiles = Profiles(load_settings(Home.locate(), {}), cache_folder())
    embedder = NameEmbedder(profiles, "minilm@1", 5.0)
    try:
        await BackgroundEmbedder(database, embedder, 30).embed_pending()
    finally:
        embedder.close()
        await database.close()


STEPS = {"tell": tell, "forget": forget, "embed": embed}


def main(step: str, tenant_id: str) -> None:
    database = Database(os.environ[DATABASE_VARIABLE])
    try:
        STEPS[step](database, tenant_id)
    finally:
        database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
