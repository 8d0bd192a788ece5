"""Rebuilds of a collection's index: asked for, looked at, cancelled. For administrators."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from knowledge.errors import Conflict, NotFound
from knowledge.indexing.rebuild_requests import cancel_rebuild, request_rebuild
from knowledge.indexing.wire import rebuild_to_wire
from knowledge.model.collection import Collection
from knowledge.model.scope import ADMIN, Caller
from knowledge.runtime import permitted_embedder
from knowledge.storage.postgres import catalogue, rebuilds
from knowledge.storage.postgres.rebuilds import Rebuild
from retrieval_api.bodies import read_json
from retrieval_api.headers import idempotency_key
from retrieval_api.service import Service, service_of
from retrieval_api.wire import RebuildBody


async def post_rebuild(request: Request) -> Response:
    """Ask for a rebuild. The same Idempotency-Key again answers with the first one's."""
    service = service_of(request)
    caller = await service.authenticate(request, ADMIN)
    projects = (await service.granted(caller, ADMIN))["projects"]
    given = await read_json(request) if await request.body() else {}
    body = RebuildBody.model_validate(given)
    key = idempotency_key(request)
    name = request.path_params["collection"]

    def ask() -> dict[str, Any]:
        collection = _collection(service, caller, name, projects)
        return rebuild_to_wire(_asked(service, caller, collection, body, key), collection)

    return JSONResponse(await asyncio.to_thread(ask), 202)


async def get_rebuild(request: Request) -> Response:
    """A rebuild as it stands."""
    return await _with_rebuild(request, lambda _service, _collection, rebuild: rebuild)


async def post_cancel(request: Request) -> Response:
    """Cancel a rebuild; one that has ended is a conflict."""

    def cancel(service: Service, collection: Collection, rebuild: Rebuild) -> Rebuild:
        if not cancel_rebuild(service.writer, collection, rebuild):
            raise Conflict(f"rebuild {rebuild.rebuild_id} has ended already: it is {rebuild.state}")
        return rebuilds.find(service.writer, rebuild.tenant_id, rebuild.rebuild_id)

    return await _with_rebuild(request, cancel)


async def _with_rebuild(
    request: Request, act: Callable[[Service, Collection, Rebuild], Rebuild]
) -> Response:
    service = service_of(request)
    caller = await service.authenticate(request, ADMIN)
    projects = (await service.granted(caller, ADMIN))["projects"]
    wanted = request.path_params["rebuild_id"]
    unknown = NotFound(f"there is no rebuild {wanted}")
    try:
        rebuild_id = uuid.UUID(wanted)
    except ValueError as error:
        raise unknown from error

    def answer() -> dict[str, Any]:
        rebuild = rebuilds.find(service.writer, caller.tenant_id, rebuild_id)
        try:
            collection = _collection(service, caller, str(rebuild.collection_id), projects)
        except NotFound as error:
            raise unknown from error
        return rebuild_to_wire(act(service, collection, rebuild), collection)

    return JSONResponse(await asyncio.to_thread(answer))


def _collection(service: Service, caller: Caller, name: str, projects: list[str]) -> Collection:
    """A collection of the caller's projects; any other is not there."""
    found = catalogue.find_collection(service.writer, caller.tenant_id, name)
    if found.project_id not in projects:
        raise NotFound(f"there is no collection {name}")
    return found


def _asked(
    service: Service,
    caller: Caller,
    collection: Collection,
    body: RebuildBody,
    key: str | None,
) -> Rebuild:
    """What was asked for; the same key of the same caller stands for the same rebuild."""
    place = f"{caller.tenant_id}\x1f{caller.client_id}\x1f{collection.collection_id}\x1f{key}"
    profile = collection.embedding_profile
    if body.names_profile:
        profile = body.embedding_profile_version
    if profile is not None:
        permitted_embedder(
            service.writer, service.profiles, profile, allow_remote=collection.allow_remote
        )
    asked = request_rebuild(
        service.writer,
        collection,
        profile=profile,
        reason="requested",
        requested_by=caller.client_id,
        rebuild_id=None if key is None else uuid.uuid5(uuid.NAMESPACE_URL, place),
    )
    if asked is None:
        raise Conflict(f"collection {collection.slug} has no index yet: publish something first")
    return asked
