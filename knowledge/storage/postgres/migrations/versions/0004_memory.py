"""Agent memory: facts of one session, vectors of names, API keys, receipts; conversations."""

from knowledge.storage.postgres.migrations import run_script

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_script("0004_memory.sql")
