"""What is drawn: alphabets so small that everything collides with everything."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from tests.properties.conftest import PROFILES
from tests.properties.reference import Document, Wanted

SLUGS = ("a", "b", "c")
PROJECTS = ("p1", "p2")
SOURCES = ("s1", "s2")
PATHS = ("src/lease_a", "src/lease_ab", "src/lease_b", "doc/lease_a")
WORDS = ("east", "north", "booking")
TAGS = ("even", "third")
LANGUAGES = (None, "python", "text")
DATES = (None, "2026-01-01T00:00:00+00:00", "2026-06-01T12:00:00+00:00")
USER = "user:*"
"""Stands for the one client that ACLs name, whose id is not known when they are drawn."""

WHICH = st.sampled_from([0, 0, 0, 1, 2])
"""Mostly the first collection: what goes wrong needs a history."""
PROFILE = st.sampled_from([None, PROFILES[0], PROFILES[0], PROFILES[1]])
ACLS = st.sampled_from([None, None, None, (), ("group:x",), (USER,), ("group:x", USER)])
DOCUMENTS = st.lists(
    st.builds(
        Document,
        path=st.sampled_from(PATHS),
        word=st.sampled_from(WORDS),
        acl=ACLS,
        tags=st.sampled_from([(), (), ("even",), ("third",), TAGS]),
        language=st.sampled_from(LANGUAGES),
        updated=st.sampled_from(DATES),
    ),
    min_size=1,
    max_size=len(PATHS),
    unique_by=lambda document: document.path,
)
WANTED = st.builds(
    Wanted,
    word=st.sampled_from(["lease", "lease", *WORDS]),
    path_prefix=st.sampled_from([None, None, "src/", "src/lease_a", "doc/lease_a", "lease"]),
    kind=st.sampled_from([None, None, "code", "document"]),
    language=st.sampled_from([None, *LANGUAGES]),
    tags=st.sampled_from([(), (), ("even",), TAGS]),
    updated_after=st.sampled_from(
        [None, None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, 13, tzinfo=UTC)]
    ),
    source=st.sampled_from([None, None, *SOURCES]),
)
MEANWHILE = st.sampled_from(["nothing", "publish", "announce", "collect", "cancel"])


def crash_at(*points: str) -> st.SearchStrategy[str | None]:
    """None, or one time in three a point."""
    return st.one_of(st.none(), st.none(), st.sampled_from(points))
