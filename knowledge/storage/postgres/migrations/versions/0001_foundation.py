"""Foundation: tenants, credentials, clock, index revisions, inbox, outbox."""

from knowledge.storage.postgres.migrations import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_script("0001_foundation.sql")
    run_script("0001_functions.sql")
