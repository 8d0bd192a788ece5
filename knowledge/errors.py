"""The one error tree: every failure a caller may want to tell apart.

The class docstring is the default message. Facts travel as attributes, so that the
edges (command line, HTTP) can translate an error without parsing its text.
"""

from __future__ import annotations

from typing import Any


class KnowledgeError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        self.facts = facts

    @property
    def message(self) -> str:
        return str(self.args[0])


# --- what the caller asked for is wrong ------------------------------------------------


class InvalidInput(KnowledgeError):
    """The input is not valid."""


class InvalidName(InvalidInput):
    """A tenant, project or collection name must match [a-z0-9][a-z0-9-]{0,61}."""


class InvalidDocument(InvalidInput):
    """A document of the feed is not valid."""


class NothingToPublish(InvalidInput):
    """There is nothing to publish."""


class InvalidSnapshot(InvalidInput):
    """The snapshot does not match its manifest."""


class InvalidFact(InvalidInput):
    """The fact is not valid."""


class InvalidQuery(InvalidInput):
    """The SELECT cannot run."""


class InvalidConfiguration(InvalidInput):
    """The configuration is not valid."""


class InvalidOntology(InvalidConfiguration):
    """An ontology document is not valid."""


class NotFound(KnowledgeError):
    """Not found."""


class Conflict(KnowledgeError):
    """The request conflicts with what is stored."""


class RevisionCollected(KnowledgeError):
    """The pinned revision has been collected and can no longer be read."""


class RevisionUnknown(InvalidInput):
    """The pinned revision does not exist."""


# --- who asks ---------------------------------------------------------------------------


class Unauthenticated(KnowledgeError):
    """A valid access token is required."""


class Forbidden(KnowledgeError):
    """The credential does not carry the scope this operation needs."""


class NoTenant(KnowledgeError):
    """A query without a tenant is never sent to a backend."""


# --- what we depend on ------------------------------------------------------------------


class Unavailable(KnowledgeError):
    """A service this operation needs cannot be reached."""


class QueueFull(Unavailable):
    """The queue is full: try again later."""


class DatabaseUnavailable(Unavailable):
    """PostgreSQL cannot be reached."""


class Busy(Unavailable):
    """The rows this operation needs are being written: try again."""


class IndexUnavailable(Unavailable):
    """The vector index cannot be reached."""


class ModelUnavailable(Unavailable):
    """The embedding model cannot be loaded or reached."""


class InvalidVector(KnowledgeError):
    """A vector is not finite, not of length 1, or not of the profile's dimension."""


class ProfileMismatch(KnowledgeError):
    """The embedding profile differs from the one stored under this name and version."""


class ScopeContractBroken(KnowledgeError):
    """The backend does not filter by scope before top-k and is not enabled."""


class PartialWrite(KnowledgeError):
    """The index did not accept every object of a batch."""


class IndexInconsistent(KnowledgeError):
    """The index does not hold what PostgreSQL says it must hold."""


# --- running the system -----------------------------------------------------------------


class LeaseHeld(KnowledgeError):
    """Another run is indexing this collection."""


class LeaseLost(KnowledgeError):
    """The lease of this run was taken over; nothing was switched."""


class RebuildCancelled(KnowledgeError):
    """The rebuild was cancelled; what served goes on serving."""


class RebuildHeld(KnowledgeError):
    """Another run is at work on this rebuild."""


class RebuildFailed(KnowledgeError):
    """The rebuild used up its attempts; what served goes on serving."""


class ChecksFailed(KnowledgeError):
    """A blocking data check failed; nothing was committed."""


class VersionMismatch(KnowledgeError):
    """The stored version is not the one this program works with."""


class StackError(KnowledgeError):
    """The stack could not be started."""
