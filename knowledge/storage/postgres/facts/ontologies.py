"""A tenant's ontologies as they are kept: every version, the newest in force."""

from __future__ import annotations

from knowledge.errors import Conflict
from knowledge.storage.postgres.database import AsyncDatabase, Database, Row, Transaction

_NEWEST = (
    "select version, document, applied_by, applied_at from graph_ontologies"
    " order by version desc limit 1"
)


def newest(connection: Transaction) -> Row | None:
    """Version and document in force; None where the tenant has none of its own."""
    return connection.execute(_NEWEST).fetchone()


async def document(database: AsyncDatabase, tenant_id: str, version: int) -> str:
    [rows] = await database.rows(
        tenant_id, ("select document from graph_ontologies where version = %s", [version])
    )
    return str(rows[0]["document"])


def versions(app: Database, tenant_id: str) -> list[Row]:
    with app.tenant(tenant_id) as connection:
        return connection.execute(
            "select version, applied_by, applied_at from graph_ontologies order by version"
        ).fetchall()


def put_in_force(app: Database, tenant_id: str, *, version: int, document: str, by: str) -> None:
    """Add a version. Raises `Conflict` unless it is newer than the one in force."""
    with app.tenant(tenant_id) as connection:
        connection.execute(
            "select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"ontology {tenant_id}"]
        )
        known = newest(connection)
        if known is not None and version <= known["version"]:
            raise Conflict(
                f"version {version} is not newer than {known['version']}, which is in force:"
                f" write version: {known['version'] + 1}"
            )
        connection.execute(
            "insert into graph_ontologies (tenant_id, version, document, applied_by)"
            " values (%s, %s, %s, %s)",
            [tenant_id, version, document, by],
        )


def kinds_of_facts(app: Database, tenant_id: str) -> list[Row]:
    """Predicate, domain and types of the tenant's believed facts, with how many there are."""
    with app.tenant(tenant_id) as connection:
        return connection.execute(
            "select predicate, domain, subject_type, object_type, count(*) as facts"
            " from graph_facts where closed_at is null and suggestion is distinct from 'suggested'"
            " group by 1, 2, 3, 4 order by 1, 2, 3, 4"
        ).fetchall()
