"""Temporal graph facts, ontologies, merged names, and kept answers of repeated requests."""

from knowledge.storage.postgres.migrations import run_script

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_script("0003_graph_facts.sql")
