"""The operations of agent memory, as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Any

from knowledge.model.scope import ADMIN, WRITE
from retrieval_api import memory_examples as examples
from retrieval_api.operation import BASE, operation

_READ_STATUSES = (401, 403, 404, 422, 503, 504)
_WRITE_STATUSES = (401, 403, 404, 409, 422, 503)


def memory_paths() -> dict[str, Any]:
    return {**_recall_paths(), **_write_paths(), **_care_paths()}


def _recall_paths() -> dict[str, Any]:
    return {
        f"{BASE}/memory/recall": {
            "post": operation(
                "Memory",
                "recallContext",
                "What is known about what a text speaks of",
                "Entities by name and meaning, fused by rank, and the facts around them. Greetings"
                " are skipped. Without a model, or with a slow one, by names only: mode says so.",
                body=("RecallBody", examples.RECALL),
                answer=("Recalled", examples.RECALLED),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/memory/search": {
            "post": operation(
                "Memory",
                "searchEntities",
                "Which entities a text may speak of",
                "Best first, each with how many of its facts hold, 40 at most.",
                body=("NamesBody", examples.FIND_ENTITIES),
                answer=("FoundEntities", examples.FOUND_ENTITIES),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/memory/subgraph": {
            "post": operation(
                "Memory",
                "querySubgraph",
                "The facts around entities",
                "One hop or two, newest first, within the limits.",
                body=("SurroundingsBody", examples.AROUND),
                answer=("Surroundings", examples.SURROUNDINGS),
                statuses=_READ_STATUSES,
            )
        },
        f"{BASE}/memory/names": {
            "get": operation(
                "Memory",
                "listMemoryNames",
                "Every name that the caller may read a fact of",
                "For clients that keep them for when the service is away.",
                answer=("MemoryNames", examples.NAMES),
                query=("projectId", "graph", "sessionId"),
                statuses=_READ_STATUSES,
            )
        },
    }


def _write_paths() -> dict[str, Any]:
    return {
        f"{BASE}/memory/upsert": {
            "post": operation(
                "Memory",
                "upsertTriples",
                "Tell facts that an agent observed",
                "Up to 1,000 in 2,000,000 bytes, redacted. One that is refused says why and does not"
                " hold up the others. The same call again changes nothing.",
                body=("UpsertBody", examples.UPSERT),
                answer=("UpsertedFacts", examples.UPSERTED),
                header=("Idempotency-Key",),
                statuses=_WRITE_STATUSES,
                scope=WRITE,
            )
        },
        f"{BASE}/memory/offload": {
            "post": operation(
                "Memory",
                "offloadTurns",
                "Hand over older turns of a conversation",
                "Accepted at once and read for facts later; turns are kept in memory only, until"
                " then. 429 with Retry-After when too many wait.",
                body=("OffloadBody", examples.OFFLOAD),
                answer=("OffloadJob", examples.JOB),
                header=("Idempotency-Key",),
                status=202,
                statuses=(401, 403, 404, 409, 422, 429, 503),
                scope=WRITE,
            )
        },
        f"{BASE}/memory/jobs/{{jobId}}": {
            "get": operation(
                "Memory",
                "readOffloadJob",
                "How far an offload is",
                "Your own, for an hour after its end.",
                answer=("OffloadJob", examples.JOB),
                path=("jobId",),
                statuses=(401, 403, 404, 503),
                scope=WRITE,
            )
        },
    }


def _care_paths() -> dict[str, Any]:
    return {
        f"{BASE}/memory/promote": {
            "post": operation(
                "Memory",
                "promoteFacts",
                "Share facts of one session with every session",
                "They stay as trusted as they were told. Your own; with the admin scope any.",
                body=("PromoteBody", examples.PROMOTE),
                answer=("PromotedFacts", examples.PROMOTED),
                statuses=_WRITE_STATUSES,
                scope=WRITE,
            )
        },
        f"{BASE}/memory/forget": {
            "post": operation(
                "Memory",
                "forgetFacts",
                "Take facts out of every store",
                "With all that was ever told of them. Your own; with the admin scope any. The receipt"
                " counts what was taken out of which store.",
                body=("ForgetBody", examples.FORGET),
                answer=("ForgetReceipt", examples.RECEIPT),
                statuses=_WRITE_STATUSES,
                scope=WRITE,
            )
        },
        f"{BASE}/memory/verify": {
            "post": operation(
                "Memory",
                "verifyFacts",
                "Say as a person that facts are right",
                "Raises no trust tier.",
                body=("VerifyBody", examples.VERIFY),
                answer=("VerifiedFacts", examples.VERIFIED),
                statuses=_WRITE_STATUSES,
                scope=ADMIN,
            )
        },
    }
