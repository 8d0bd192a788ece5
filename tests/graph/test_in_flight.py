"""What a writer has recorded but not committed belongs to no answer yet."""

from __future__ import annotations

from knowledge.graph.asserting import Batch, write_batch
from knowledge.graph.ontology.defaults import default_ontology
from tests.graph.telling import OPERATOR, Graph, fact, read


def test_a_batch_in_flight_while_the_first_page_is_read_is_in_no_page(graph: Graph) -> None:
    graph.tell(*(fact("a", "TRIED", f"o{n}") for n in range(5)))
    words, place = default_ontology(), (graph.tenant_id, "p1")
    late = Batch([read(fact("a", "TRIED", "late"), words)])
    with graph.runtime.app.tenant(graph.tenant_id) as connection:
        write_batch(connection, *place, late, writer=OPERATOR, ontology=words)
        answer = graph.query(limit=2)
    found = list(answer.facts)
    while answer.next_cursor:
        answer = graph.query(limit=2, cursor=answer.next_cursor)
        found += answer.facts
    assert len(found) == 5
