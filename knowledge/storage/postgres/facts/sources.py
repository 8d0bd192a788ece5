"""The sources of facts: who may read them; and whether the place they are in exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from knowledge.errors import NotFound
from knowledge.storage.postgres.database import Database, Row


@dataclass(frozen=True, slots=True)
class FactSource:
    """``acl`` None is everyone with the project, () nobody. ``collections`` are the slugs of
    those it published documents in: who may not read it there does not read its facts either."""

    source_id: str
    acl: tuple[str, ...] | None
    created_at: datetime
    deleted_at: datetime | None
    collections: tuple[str, ...] = ()


_SOURCES = """
    select g.source_id, g.acl, g.created_at, g.deleted_at, array(
        select c.slug from sources s join collections c using (collection_id)
        where s.project_id = g.project_id and s.source_id = g.source_id order by c.slug
    ) as collections
    from graph_sources g
"""


def list_sources(app: Database, tenant_id: str, project_id: str) -> list[FactSource]:
    """Every source that said a fact of the project, by name. Raises `NotFound`."""
    require_project(app, tenant_id, project_id)
    with app.tenant(tenant_id) as connection:
        rows = connection.execute(
            _SOURCES + " where g.project_id = %s order by g.source_id", [project_id]
        ).fetchall()
    return [_source(row) for row in rows]


def set_acl(
    app: Database, tenant_id: str, project_id: str, source_id: str, acl: Sequence[str] | None
) -> FactSource:
    """Say who may read the source's facts; acts on the next request. Raises `NotFound`."""
    with app.tenant(tenant_id) as connection:
        connection.execute(
            "update graph_sources set acl = %s where project_id = %s and source_id = %s",
            [None if acl is None else list(acl), project_id, source_id],
        )
        row = connection.execute(
            _SOURCES + " where g.project_id = %s and g.source_id = %s", [project_id, source_id]
        ).fetchone()
    if row is None:
        raise NotFound(f"no source {source_id} said a fact in project {project_id}")
    return _source(row)


def require_tenant(app: Database, tenant_id: str) -> None:
    """Raises `NotFound`."""
    with app.tenant(tenant_id) as connection:
        if not connection.execute("select from tenants").fetchall():
            raise NotFound(f"there is no tenant {tenant_id}")


def require_project(app: Database, tenant_id: str, project_id: str) -> None:
    """Raises `NotFound`."""
    with app.tenant(tenant_id) as connection:
        found = connection.execute(
            "select from projects where project_id = %s", [project_id]
        ).fetchall()
    if not found:
        raise NotFound(f"there is no project {project_id}")


def _source(row: Row) -> FactSource:
    return FactSource(
        source_id=row["source_id"],
        acl=None if row["acl"] is None else tuple(row["acl"]),
        created_at=row["created_at"],
        deleted_at=row["deleted_at"],
        collections=tuple(row["collections"]),
    )
