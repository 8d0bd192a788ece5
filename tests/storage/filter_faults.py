"""Faults put into the filter of each backend, by what they get wrong.

Every backend has one that forgets each of its clauses, and those that its own way of filtering
makes likely. What cannot go wrong in a backend is listed with the reason, not left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
from weaviate.classes.query import Filter

from knowledge.storage.backend import ScopeFilter
from knowledge.storage.memory import search as memory
from knowledge.storage.pgvector import schema as pgvector
from knowledge.storage.weaviate import schema, search

Inject = Callable[[pytest.MonkeyPatch], None]
_Change = Callable[[ScopeFilter, Any], Any]


@dataclass(frozen=True)
class Impossible:
    """A fault that a backend cannot have, and why."""

    reason: str


RESTRICTIONS: Final = (
    *("generation", "project", "source", "acl", "from_rev", "to_rev"),
    *("path", "kind", "language", "tags", "updated_at"),
)

# --- Weaviate: the filter is a list of parts, changed one by one ---------------------------


def _weaviate(change: _Change) -> Inject:
    def faulty(scope: ScopeFilter) -> Any:
        parts = (change(scope, part) for part in schema.scope_filter(scope).filters)
        return Filter.all_of([part for part in parts if part is not None])

    return lambda patch: patch.setattr(search, "scope_filter", faulty)


def _forget(clause: str, *, beyond_head: int = 0) -> _Change:
    def change(scope: ScopeFilter, part: Any) -> Any:
        return None if part.target == clause and scope.head > beyond_head else part

    return change


def _any_tag(_scope: ScopeFilter, part: Any) -> Any:
    is_tags = part.target == "tags"
    return Filter.by_property("tags").contains_any(list(part.value)) if is_tags else part


def _open_ended_path(_scope: ScopeFilter, part: Any) -> Any:
    return None if part.target == "path" and "less" in str(part.operator).lower() else part


def _any_acl_but_one(_scope: ScopeFilter, part: Any) -> Any:
    return Filter.by_property("acl").contains_none(["group:b"]) if part.target == "acl" else part


def _trimmed(_scope: ScopeFilter, part: Any) -> Any:
    sources = ["s1", schema.exact("s1 ")]
    return Filter.by_property("source").contains_any(sources) if part.target == "source" else part


def _visible_at_its_end(scope: ScopeFilter, part: Any) -> Any:
    if part.target != "to_rev":
        return part
    return Filter.by_property("to_rev").contains_any([*part.value, scope.revision])


def _visible_before_its_start(scope: ScopeFilter, part: Any) -> Any:
    if part.target != "from_rev":
        return part
    later = [revision for revision in part.value if revision > scope.revision + 1]
    return Filter.by_property("from_rev").contains_none(later)


_WEAVIATE: Final[Mapping[str, Inject | Impossible]] = {
    **{clause: _weaviate(_forget(clause)) for clause in RESTRICTIONS if clause != "generation"},
    "generation": Impossible("a query names the Weaviate tenant that it is sent to"),
    "visible at its end": _weaviate(_visible_at_its_end),
    "visible before its start": _weaviate(_visible_before_its_start),
    "from_rev as a range": _weaviate(_forget("from_rev", beyond_head=500)),
    "to_rev as a range": _weaviate(_forget("to_rev", beyond_head=500)),
    "any tag for all tags": _weaviate(_any_tag),
    "a path without an end": _weaviate(_open_ended_path),
    "nobody taken for everyone": _weaviate(_any_acl_but_one),
    "a source trimmed": _weaviate(_trimmed),
}

# --- pgvector and memory: the filter is a dict of clauses, one replaced or taken out -------


def _clause(clauses: Any, name: str, faulty: Any) -> Inject:
    return lambda patch: patch.setitem(clauses, name, faulty)


_PGVECTOR: Final[Mapping[str, Inject | Impossible]] = {
    **{clause: _clause(pgvector.CLAUSES, clause, "true") for clause in pgvector.CLAUSES},
    "any tag for all tags": _clause(
        pgvector.CLAUSES, "tags", "(cardinality(%(tags)s::text[]) = 0 or tags && %(tags)s)"
    ),
    "a pattern for a prefix": _clause(
        pgvector.CLAUSES,
        "path",
        "(%(path_prefix)s::text is null or path like %(path_prefix)s || '%%')",
    ),
    "nobody taken for everyone": _clause(
        pgvector.CLAUSES, "acl", "(coalesce(acl, '{}') = '{}' or acl && %(acl)s)"
    ),
    "a source trimmed": _clause(pgvector.CLAUSES, "source", "trim(source_id) = any(%(sources)s)"),
    "visible at its end": _clause(pgvector.CLAUSES, "to_rev", "%(revision)s <= to_rev"),
    "visible before its start": _clause(
        pgvector.CLAUSES, "from_rev", "from_rev <= %(revision)s + 1"
    ),
}

_MEMORY: Final[Mapping[str, Inject | Impossible]] = {
    **{
        clause: _clause(memory.CLAUSES, clause, lambda _scope, _version: True)
        for clause in memory.CLAUSES
    },
    "generation": Impossible("items are looked up in the dict of their generation"),
    "any tag for all tags": _clause(
        memory.CLAUSES,
        "tags",
        lambda scope, version: not scope.tags or bool({*scope.tags} & {*version.chunk.tags}),
    ),
    "nobody taken for everyone": _clause(
        memory.CLAUSES,
        "acl",
        lambda scope, version: not version.chunk.acl or bool({*scope.acl} & {*version.chunk.acl}),
    ),
    "visible at its end": _clause(
        memory.CLAUSES, "to_rev", lambda scope, version: scope.revision <= version.to_rev
    ),
    "visible before its start": _clause(
        memory.CLAUSES, "from_rev", lambda scope, version: version.from_rev <= scope.revision + 1
    ),
}

FAULTS: Final[Mapping[str, Mapping[str, Inject | Impossible]]] = {
    "weaviate": _WEAVIATE,
    "pgvector": _PGVECTOR,
    "memory": _MEMORY,
}


def injectable() -> list[tuple[str, str]]:
    """Each backend with each fault that can be put into it."""
    return [
        (backend, name)
        for backend, faults in FAULTS.items()
        for name, fault in faults.items()
        if not isinstance(fault, Impossible)
    ]
