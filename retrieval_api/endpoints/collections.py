"""Collections a caller may see, and their index revisions."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.errors import NotFound
from knowledge.model.scope import READ, Caller
from knowledge.retrieval.legs import KINDS
from knowledge.retrieval.wire import time_to_wire
from knowledge.storage.postgres import service as queries
from knowledge.storage.postgres.database import Row
from retrieval_api.service import Service, service_of

_WIRE_KINDS = {kind.value: leg.value for leg, kind in KINDS.items()}


async def list_collections(request: Request) -> Response:
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    rows = await _visible(service, caller, request.query_params.get("projectId"))
    return JSONResponse({"collections": [_collection(row) for row in rows]})


async def list_indexes(request: Request) -> Response:
    """Index revisions of a collection, newest first, with state, counts and profile versions."""
    service = service_of(request)
    caller = await service.authenticate(request, READ)
    wanted = request.path_params["collection"]
    for row in await _visible(service, caller, None):
        if wanted in (row["slug"], str(row["collection_id"])):
            revisions = await queries.index_revisions(
                service.database, caller.tenant_id, row["collection_id"]
            )
            return JSONResponse(
                {
                    "collection": row["slug"],
                    "headRevision": row["head_rev"],
                    "indexes": [_index_revision(revision) for revision in revisions],
                }
            )
    raise NotFound(f"there is no collection {wanted}")


async def _visible(service: Service, caller: Caller, project_id: str | None) -> list[Row]:
    granted = await service.granted(caller, READ)
    projects = list(granted["projects"])
    if project_id is not None:
        if project_id not in projects:
            raise NotFound(f"there is no project {project_id}")
        projects = [project_id]
    acl = [f"user:{caller.client_id}", *(f"group:{group}" for group in granted["groups"])]
    return await queries.collections(service.database, caller.tenant_id, projects, acl)


def _collection(row: Row) -> dict[str, Any]:
    return {
        "collectionId": str(row["collection_id"]),
        "collection": row["slug"],
        "projectId": row["project_id"],
        "kind": row["kind"],
        "embeddingProfileVersion": row["embedding_profile"],
        "headRevision": row["head_rev"],
        "servedRevisions": {_WIRE_KINDS[kind]: rev for kind, rev in row["served"].items()},
        "sources": row["sources"],
        "createdAt": time_to_wire(row["created_at"]),
    }


def _index_revision(row: Row) -> dict[str, Any]:
    return {
        "indexRevisionId": str(row["index_revision_id"]),
        "tenantId": row["tenant_id"],
        "collectionId": str(row["collection_id"]),
        "kind": _WIRE_KINDS[row["kind"]],
        "revision": row["revision"],
        "embeddingProfileVersion": row["embedding_profile_version"],
        "vectorProfile": row["vector_profile"],
        "state": row["state"],
        "itemCount": row["item_count"],
        "builtFromSnapshots": [str(snapshot) for snapshot in row["built_from_snapshots"]],
        "builtAt": row["built_at"] and time_to_wire(row["built_at"]),
        "retiredAt": row["retired_at"] and time_to_wire(row["retired_at"]),
        "collectedAt": row["collected_at"] and time_to_wire(row["collected_at"]),
        "error": row["error"],
    }
