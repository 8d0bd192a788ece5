"""Where a memory's facts are kept: the namespace ``tenant|graph``."""

from __future__ import annotations

import re
from typing import Final

from knowledge.errors import InvalidInput, NotFound

DEFAULT_GRAPH: Final = "main"
_GRAPH: Final = re.compile(r"[a-z0-9][a-z0-9._:-]{0,63}")


def memory_namespace(tenant_id: str, graph: str | None) -> str:
    """The namespace of a graph, which may be given with its tenant in front.

    Raises `NotFound` for another tenant's, `InvalidInput` for a name that is none.
    """
    owner, bar, name = (graph or DEFAULT_GRAPH).rpartition("|")
    if bar and owner != tenant_id:
        raise NotFound(f"there is no memory {str(graph)[:80]}")
    if not _GRAPH.fullmatch(name):
        raise InvalidInput(
            f"graph {name[:80]!r} is not valid: use 1 to 64 of a-z, 0-9 and '._:-', starting with"
            " a letter or digit"
        )
    return f"{tenant_id}|{name}"
