"""The turns around turns of a conversation, as far as a scope may read them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from knowledge.storage.backend import ScopeFilter
from knowledge.storage.postgres.database import AsyncDatabase
from knowledge.storage.postgres.retrieval import filter_values, scope_values

_AROUND: Final = "select * from turns_around(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where a turn stands: its source, its session, its place there."""

    source_id: str
    session: str
    place: float


@dataclass(frozen=True, slots=True)
class PlacedTurn:
    """A readable turn. ``meets`` says whether the request's own filters admit it."""

    object_id: uuid.UUID
    at: TurnPlace
    meets: bool


async def turns_around(
    database: AsyncDatabase,
    collection_id: uuid.UUID,
    scope: ScopeFilter,
    places: Sequence[TurnPlace],
    reach: int,
) -> list[PlacedTurn]:
    """The turns at these places and up to ``reach`` on each side, each once, in their order.

    A turn that the scope does not admit is as if it did not exist: the next one is counted. The
    request's own filters (path, kind, language, tags, date) leave none out; ``meets`` tells.
    """
    values = [
        *scope_values(collection_id, scope),
        [place.source_id for place in places],
        [place.session for place in places],
        [place.place for place in places],
        reach,
        *filter_values(scope),
    ]
    [rows] = await database.rows(scope.tenant_id, (_AROUND, values))
    return [
        PlacedTurn(
            row["object_id"],
            TurnPlace(row["source_id"], row["session"], row["place"]),
            row["meets"],
        )
        for row in rows
    ]
