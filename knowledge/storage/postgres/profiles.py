"""Embedding profiles as persisted at first use: immutable from then on."""

from __future__ import annotations

from dataclasses import asdict

from psycopg.types.json import Jsonb

from knowledge.errors import ProfileMismatch
from knowledge.profiles.profile import EmbeddingProfile
from knowledge.storage.postgres.database import Database


def require_same(app: Database, profile: EmbeddingProfile) -> None:
    """Store the profile at first use; afterwards raise `ProfileMismatch` when it differs."""
    with app.transaction() as connection:
        connection.execute(
            "insert into embedding_profiles (profile, fingerprint, dimension, definition)"
            " values (%s, %s, %s, %s) on conflict do nothing",
            [profile.key, profile.fingerprint, profile.dimension, Jsonb(asdict(profile))],
        )
        row = connection.execute(
            "select fingerprint, dimension from embedding_profiles where profile = %s",
            [profile.key],
        ).fetchone()
    assert row is not None
    if row["fingerprint"] != profile.fingerprint:
        name, _, version = profile.key.partition("@")
        raise ProfileMismatch(
            f"embedding profile {profile.key} is not what it was when first used"
            f" (dimension {row['dimension']}, now {profile.dimension}): define the change as"
            f" {name}@{int(version) + 1} and set collections to it",
            profile=profile.key,
        )
