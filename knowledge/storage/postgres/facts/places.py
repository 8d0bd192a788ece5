"""Where in a tenant there are facts at all, for the hints of its operator."""

from __future__ import annotations

from typing import Final

from knowledge.model.fact import EntityName
from knowledge.storage.postgres.database import Database

_MENTIONS: Final = tuple(
    f"select from graph_facts where {side}_key = %(key)s"
    " and (%(namespace)s::text is null or namespace = %(namespace)s)"
    f" and (%(type)s::text is null or {side}_type is null or {side}_type = %(type)s) limit 1"
    for side in ("subject", "object")
)


def is_mentioned(app: Database, tenant_id: str, name: EntityName) -> bool:
    """Whether any fact of the tenant, believed or not, has an end of this name."""
    values = {"key": name.key, "namespace": name.namespace, "type": name.type}
    with app.tenant(tenant_id) as connection:
        return any(connection.execute(query, values).fetchall() for query in _MENTIONS)


def projects_with_facts(app: Database, tenant_id: str) -> list[str]:
    """Projects of the tenant in which a fact was told, by name."""
    with app.tenant(tenant_id) as connection:
        rows = connection.execute(
            "select project_id from graph_heads order by project_id"
        ).fetchall()
    return [row["project_id"] for row in rows]
