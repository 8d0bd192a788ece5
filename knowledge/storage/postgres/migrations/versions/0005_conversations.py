"""Collections of conversations: the session of a turn, and its place there."""

from knowledge.storage.postgres.migrations import run_script

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_script("0005_conversations.sql")
