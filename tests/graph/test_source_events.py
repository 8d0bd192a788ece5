"""Events about sources reach those that only said facts."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.errors import NotFound
from knowledge.publishing.announcing import receive_event
from tests.graph.telling import Graph, fact
from tests.publication import collection_of


def _receive(graph: Graph, event_type: str, source: str, **data: Any) -> None:
    collection = collection_of(graph.runtime, graph.tenant_id, f"c-{event_type.lower()}-{source}")
    receive_event(
        graph.runtime.app,
        tenant_id=graph.tenant_id,
        roots=[],
        event_source="ingestion",
        event_id=f"{event_type}-{source}",
        event_type=event_type,
        data={
            "tenantId": graph.tenant_id,
            "collectionId": str(collection.collection_id),
            "sourceId": source,
            **data,
        },
    )


def test_changed_access_and_deletion_hide_facts_on_the_next_question(graph: Graph) -> None:
    graph.tell(fact("a", "USES", "b"), fact("a", "USES", "c", sourceId="s2"))
    _receive(graph, "SourceAccessChanged", "s1", acl=["group:eng"])
    assert graph.objects(subject="a") == ["c"]
    assert graph.objects(graph.client(groups=["eng"]), subject="a") == ["b", "c"]
    _receive(graph, "SourceDeleted", "s2")
    assert graph.objects(subject="a") == []
    with pytest.raises(NotFound):
        _receive(graph, "SourceDeleted", "unknown")
