"""Publishing and indexing in this process, without a scheduler."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from knowledge.indexing.convergence import converge_hybrid, converge_metadata
from knowledge.indexing.embeddings import embed_missing
from knowledge.indexing.serving import serve
from knowledge.indexing.tick import Tick, leased, tick
from knowledge.model.collection import Collection, CollectionKind
from knowledge.publishing.publish import PublishRequest, publish
from knowledge.runtime import Runtime
from knowledge.storage.postgres import catalogue
from knowledge.storage.postgres.publishing import Acl
from knowledge.storage.snapshots import Mode

Document = Mapping[str, Any]
_runs = itertools.count(1)


def collection_of(
    runtime: Runtime,
    tenant_id: str,
    slug: str = "docs",
    *,
    project_id: str = "p1",
    profile: str | None = None,
    kind: CollectionKind = "documents",
) -> Collection:
    """A new collection, with its project."""
    catalogue.ensure_project(runtime.owner, tenant_id, project_id)
    return catalogue.create_collection(
        runtime.app, tenant_id, project_id, slug, embedding_profile=profile, kind=kind
    )


def announce_documents(
    runtime: Runtime,
    collection: Collection,
    documents: Sequence[Document],
    *,
    source: str = "s1",
    project_id: str | None = None,
    acl: tuple[str, ...] | Acl | None = Acl.UNCHANGED,
    mode: Mode = "full",
    deleted: Sequence[str] = (),
) -> None:
    """Publish documents ``{"id", "text", …}`` as one feed; nothing is indexed yet."""
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder) / "feed.jsonl"
        feed.write_text("".join(json.dumps(document) + "\n" for document in documents))
        request = PublishRequest(
            [feed],
            project_id or collection.project_id,
            source_id=source,
            mode=mode,
            acl=acl,
            deleted=deleted,
        )
        publish(runtime, collection, request)


def index(
    runtime: Runtime, collection: Collection, *, until: Literal["tick"] | None = None
) -> Tick:
    """Take what is pending and bring every index kind to serve it, as a run would.

    ``until`` ends it there, as an interrupt would.
    """
    run = f"run-{next(_runs)}"
    with leased(runtime, collection.tenant_id, collection.slug, run) as lease:
        ticked = tick(runtime, lease, check=lambda _snapshot: None)
        if until == "tick":
            raise KeyboardInterrupt
        embed_missing(runtime, lease)
        converge_hybrid(runtime, lease)
        converge_metadata(runtime, lease)
        serve(runtime, lease)
    return ticked


def publish_documents(
    runtime: Runtime, collection: Collection, documents: Sequence[Document], **options: Any
) -> Tick:
    """`announce_documents`, then `index`."""
    announce_documents(runtime, collection, documents, **options)
    return index(runtime, collection)
