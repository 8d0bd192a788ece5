"""Append-only migrations: a numbered SQL script each, run by Alembic in one transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alembic import command, context, op
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from knowledge.errors import VersionMismatch

HEAD: Final = "0005"
SCHEMA: Final = "knowledge"
_HERE: Final = Path(__file__).parent


def run_script(name: str) -> None:
    """Run one script of ``versions/``; ``{app}`` in it is the application role."""
    script = (_HERE / "versions" / name).read_text()
    app_role = context.config.attributes["app_role"]
    quoted = '"' + app_role.replace('"', '""') + '"'
    op.get_bind().exec_driver_sql(script.replace("{app}", quoted).replace("%", "%%"))


def migrate(owner_url: str, *, app_role: str, upgrade: bool) -> str | None:
    """Bring a fresh database to `HEAD`, and with ``upgrade`` an older one; returns what it was.

    Raises `VersionMismatch` when the database was written by a newer program, or by an older
    one without ``upgrade``: a schema changes only when its operator asks for it.
    """
    engine = create_engine(make_url(owner_url).set(drivername="postgresql+psycopg"))
    try:
        with engine.begin() as connection:
            connection.execute(text("select pg_advisory_xact_lock(7211970)"))
            connection.execute(text(f"create schema if not exists {SCHEMA}"))
            found = MigrationContext.configure(
                connection, opts={"version_table_schema": SCHEMA}
            ).get_current_revision()
            require_known(found)
            if found == HEAD:
                return found
            if found is not None and not upgrade:
                raise older(found)
            config = Config()
            config.set_main_option("script_location", str(_HERE))
            config.attributes.update(connection=connection, app_role=app_role)
            command.upgrade(config, "head")
            return found
    finally:
        engine.dispose()


def require_known(found: str | None) -> None:
    if found is not None and found > HEAD:
        raise VersionMismatch(
            f"the database has schema version {found}, this program works with {HEAD}: "
            "use a newer program",
            found=found,
            expected=HEAD,
        )


def older(found: str | None) -> VersionMismatch:
    return VersionMismatch(
        f"the database has schema version {found}, this program works with {HEAD}: "
        "run `knowledge migrate`",
        found=found,
        expected=HEAD,
    )
