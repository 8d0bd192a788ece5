"""Metrics for Prometheus. Queries, names and paths never become labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from knowledge.retrieval.answer import Answer, LegState

_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """One registry a service, so that several may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        prefix = "connectsoft_factory_knowledge"
        self._retrievals = Counter(
            f"{prefix}_retrievals",
            "Retrievals and outcomes.",
            ("tenant", "index_kinds", "outcome"),
            registry=self.registry,
        )
        self._latency = Histogram(
            f"{prefix}_retrieval_latency",
            "End-to-end retrieval latency in seconds.",
            ("tenant",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._foreign = Counter(
            f"{prefix}_foreign_hits_dropped",
            "Hits outside the scope that a backend returned; more than none is a fault.",
            ("tenant",),
            registry=self.registry,
        )
        self._recalls = Counter(
            f"{prefix}_memory_recalls",
            "Recalls of agent memory, by how they were answered.",
            ("tenant", "mode"),
            registry=self.registry,
        )
        self._recall_latency = Histogram(
            f"{prefix}_memory_recall_latency",
            "Latency of recalls in seconds.",
            ("tenant",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._facts = Gauge(
            f"{prefix}_graph_facts",
            "Facts that are believed, by domain and trust tier.",
            ("tenant", "domain", "trust_tier"),
            registry=self.registry,
        )

    def count(self, answer: Answer) -> None:
        read = {
            leg.leg.value for leg in answer.legs if leg.state in (LegState.OK, LegState.FALLBACK)
        }
        outcome = "degraded" if answer.degraded else "ok"
        tenant = answer.scope.tenant_id
        self._retrievals.labels(tenant, "+".join(sorted(read)), outcome).inc()
        self._latency.labels(tenant).observe(answer.latency_ms / 1000)
        self.count_foreign(tenant, answer.foreign_dropped)

    def count_foreign(self, tenant_id: str, dropped: int) -> None:
        """Count what a backend returned of another scope."""
        if dropped:
            self._foreign.labels(tenant_id).inc(dropped)

    def count_recall(self, tenant_id: str, mode: str, seconds: float, dropped: int) -> None:
        """Count a recall: ``mode`` is hybrid, names or skipped."""
        self._recalls.labels(tenant_id, mode).inc()
        self._recall_latency.labels(tenant_id).observe(seconds)
        self.count_foreign(tenant_id, dropped)

    def count_failure(self, tenant_id: str, outcome: str) -> None:
        self._retrievals.labels(tenant_id, "", outcome).inc()

    def set_facts(self, counts: Iterable[Mapping[str, Any]]) -> None:
        """Replace the counts of facts: rows of tenant_id, domain, trust_tier and facts."""
        self._facts.clear()
        for row in counts:
            labels = (row["tenant_id"], row["domain"], row["trust_tier"])
            self._facts.labels(*labels).set(row["facts"])

    def text(self) -> bytes:
        """The exposition format, version 0.0.4."""
        return generate_latest(self.registry)
