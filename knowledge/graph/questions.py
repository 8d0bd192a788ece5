"""Questions about facts, as the graph understands them; the edges translate their forms into these."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from knowledge.errors import InvalidInput
from knowledge.model.fact import Domain, require_name, require_predicate
from knowledge.model.scope import TrustTier

MAX_LIMIT: Final = 1_000
MAX_ENTITIES: Final = 32
MAX_HOPS: Final = 3
MAX_PATH_HOPS: Final = 6
MAX_NODES: Final = 1_000
MAX_EDGES: Final = 2_000
MAX_FAN_OUT: Final = 500
MAX_PATHS: Final = 50

Direction = Literal["out", "in", "both"]
Window = tuple[datetime, datetime]
EVER: Final[Window] = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Sieve:
    """Which facts count. ``as_of`` None means now, unless a window ``between`` (half-open) is given.

    ``as_known_at`` asks what was believed then. Suggestions are inferred facts that nobody has
    confirmed: they are left out unless asked for.
    """

    domains: tuple[Domain, ...] = ()
    namespace: str | None = None
    as_of: datetime | None = None
    between: Window | None = None
    as_known_at: datetime | None = None
    min_trust: TrustTier | None = None
    verified: bool | None = None
    source_id: str | None = None
    suggestions: bool = False

    def __post_init__(self) -> None:
        if self.between is not None and self.between[0] >= self.between[1]:
            raise InvalidInput("between ends before it begins: write [from, to]")


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """Facts by subject, predicate and object, names of any spelling; each is optional.

    ``suggestions_only`` asks for the inferred facts that nobody has confirmed or rejected.
    """

    project_id: str
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    subject_type: str | None = None
    object_type: str | None = None
    sieve: Sieve = Sieve()
    suggestions_only: bool = False
    limit: int = 100
    cursor: str | None = None

    def __post_init__(self) -> None:
        require_within("limit", self.limit, MAX_LIMIT)
        for what in ("subject", "object"):
            if (name := getattr(self, what)) is not None:
                require_name(name, what)
        if self.predicate is not None:
            require_predicate(self.predicate)


@dataclass(frozen=True, slots=True)
class Expansion:
    """What is around some entities: facts up to ``hops`` away, newest first a node."""

    project_id: str
    entities: tuple[str, ...]
    hops: int = 1
    direction: Direction = "both"
    predicates: tuple[str, ...] = ()
    sieve: Sieve = Sieve()
    max_nodes: int = 200
    max_edges: int = 500
    fan_out: int = 50

    def __post_init__(self) -> None:
        if not 1 <= len(self.entities) <= MAX_ENTITIES:
            raise InvalidInput(
                f"{len(self.entities)} entities given: name 1 to {MAX_ENTITIES} of them"
            )
        for name in self.entities:
            require_name(name, "entity")
        for name in self.predicates:
            require_predicate(name)
        require_within("hops", self.hops, MAX_HOPS)
        require_within("maxNodes", self.max_nodes, MAX_NODES)
        require_within("maxEdges", self.max_edges, MAX_EDGES)
        require_within("fanOut", self.fan_out, MAX_FAN_OUT)


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """The shortest chains of facts from one entity to another."""

    project_id: str
    source: str
    target: str
    max_hops: int = 4
    direction: Direction = "both"
    sieve: Sieve = Sieve()
    limit: int = 10

    def __post_init__(self) -> None:
        require_name(self.source, "from")
        require_name(self.target, "to")
        require_within("maxHops", self.max_hops, MAX_PATH_HOPS)
        require_within("limit", self.limit, MAX_PATHS)


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """Everything that was ever told of an entity."""

    project_id: str
    entity: str
    predicate: str | None = None
    domains: tuple[Domain, ...] = ()
    limit: int = MAX_LIMIT

    def __post_init__(self) -> None:
        require_name(self.entity, "entity")
        if self.predicate is not None:
            require_predicate(self.predicate)
        require_within("limit", self.limit, MAX_LIMIT)


def require_within(what: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(f"{what} is {value}, it must be from 1 to {most:,}")
