"""Rebuilds and garbage collection of generations; the hybrid index in PostgreSQL."""

from knowledge.storage.postgres.migrations import run_script

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_script("0002_rebuilds.sql")
    run_script("0002_hybrid_items.sql")
    run_script("0002_search.sql")
