"""Questions to a memory; the edges translate their forms into these."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from knowledge.errors import InvalidInput
from knowledge.graph.questions import require_within
from knowledge.memory.plan import MemoryScope
from knowledge.model.fact import require_name

MAX_FACTS: Final = 40
MAX_HOPS: Final = 2
MAX_ENTRIES: Final = 8
MIN_HITS: Final = 3
MAX_HITS: Final = 10
MAX_QUERY_CHARS: Final = 8_192
MAX_TOKENS: Final = 2_000
"""Of an answer where the caller does not say; see `knowledge.memory.wire.tokens_of`."""

DEFAULT_MEMORY: Final = MemoryScope()
MIN_ANSWER_TOKENS: Final = 500
MAX_ANSWER_TOKENS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of what is around entities: hops, facts, and the size of the answer."""

    hops: int = 1
    facts: int = MAX_FACTS
    tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        require_within("hops", self.hops, MAX_HOPS)
        require_within("limit", self.facts, MAX_FACTS)
        if not MIN_ANSWER_TOKENS <= self.tokens <= MAX_ANSWER_TOKENS:
            raise InvalidInput(
                f"maxTokens is {self.tokens}, it must be from {MIN_ANSWER_TOKENS} to"
                f" {MAX_ANSWER_TOKENS:,}"
            )


DEFAULT_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """What is known about what a text speaks of; ``as_of`` None is now."""

    query: str
    memory: MemoryScope = DEFAULT_MEMORY
    as_of: datetime | None = None
    bounds: Bounds = DEFAULT_BOUNDS

    def __post_init__(self) -> None:
        require_query(self.query)


@dataclass(frozen=True, slots=True)
class NameQuestion:
    """Which entities a text may speak of."""

    query: str
    memory: MemoryScope = DEFAULT_MEMORY
    as_of: datetime | None = None
    limit: int = 5

    def __post_init__(self) -> None:
        require_query(self.query)
        if not MIN_HITS <= self.limit <= MAX_HITS:
            raise InvalidInput(f"limit is {self.limit}, it must be from {MIN_HITS} to {MAX_HITS}")


@dataclass(frozen=True, slots=True)
class SubgraphQuestion:
    """The facts around entities that are named."""

    entities: tuple[str, ...]
    memory: MemoryScope = DEFAULT_MEMORY
    as_of: datetime | None = None
    bounds: Bounds = DEFAULT_BOUNDS

    def __post_init__(self) -> None:
        if not 1 <= len(self.entities) <= MAX_ENTRIES:
            raise InvalidInput(
                f"{len(self.entities)} entities given: name 1 to {MAX_ENTRIES} of them"
            )
        for name in self.entities:
            require_name(name, "entity")


def require_query(query: str) -> None:
    """Raises `InvalidInput` for a query that is too long, or no Unicode; an empty one is skipped
    later."""
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"query has {len(query):,} characters, at most {MAX_QUERY_CHARS:,} are allowed"
        )
    if not query.isascii() and any("\ud800" <= character <= "\udfff" for character in query):
        raise InvalidInput("query holds a lone surrogate (half a character): send whole ones")
