"""The clock by brute force: every revision is kept whole, every question is a scan.

Written from the rules alone. It shares nothing with the product, so that both would have to be
wrong in the same way to agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

OPEN = 2147483647
WORD = "lease"
"""Stands in every text and every path, so a question for it finds all that its asker may see."""

Acl = tuple[str, ...] | None
Key = tuple[str, str]
"""Source and path: where a chunk stands."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document and its one chunk. Two are equal when they say the same to everyone."""

    path: str
    word: str
    acl: Acl = field(default=None, compare=False)
    tags: tuple[str, ...] = ()
    language: str | None = None
    updated: str | None = None

    @property
    def text(self) -> str:
        return f"{WORD} {self.word}"

    @property
    def kind(self) -> str:
        return "code" if self.language == "python" else "document"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: the ACL entries it satisfies, and the project it asks in."""

    entries: frozenset[str]
    project: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question asks for."""

    word: str = WORD
    path_prefix: str | None = None
    kind: str | None = None
    language: str | None = None
    tags: tuple[str, ...] = ()
    updated_after: datetime | None = None
    source: str | None = None

    def admits(self, key: Key, document: Document) -> bool:
        updated = datetime.fromisoformat(document.updated) if document.updated else None
        return (
            self.word in document.text.split()
            and (self.source is None or key[0] == self.source)
            and (
                self.path_prefix is None
                or document.path[: len(self.path_prefix)] == self.path_prefix
            )
            and (self.kind is None or document.kind == self.kind)
            and (self.language is None or document.language == self.language)
            and all(tag in document.tags for tag in self.tags)
            and (
                self.updated_after is None
                or (updated is not None and not updated < self.updated_after)
            )
        )


@dataclass(frozen=True, slots=True)
class Published:
    """A snapshot in the inbox. ``replaced`` are the paths it replaces, None for all of the source."""

    source: str
    documents: Sequence[Document]
    replaced: frozenset[str] | None
    version: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deletion in the inbox."""

    source: str


@dataclass(slots=True)
class Source:
    project: str
    acl: Acl = None
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Cited:
    """What an answer says of one chunk."""

    collection: str
    source: str
    path: str
    text: str
    source_version: str
    revision: int
    profile: str | None


@dataclass(frozen=True, slots=True)
class Version:
    """A chunk as it stands, unchanged, in the revisions ``from_rev <= R < to_rev``."""

    key: Key
    from_rev: int
    to_rev: int


@dataclass(slots=True)
class Clock:
    """One collection. ``profile`` is the one pinned, ``served`` the revisions with theirs.

    ``floor`` is the oldest revision not collected, ``deleted_below`` the one whose history is
    gone. ``unsettled`` are the ACLs of before the ticks that a killed run left unserved: an index
    may hold them or today's.
    """

    slug: str
    project: str
    profile: str | None
    head: int = 0
    content: dict[int, Mapping[Key, Document]] = field(default_factory=lambda: {0: {}})
    versions: dict[int, Mapping[str, str]] = field(default_factory=lambda: {0: {}})
    served: dict[int, str | None] = field(default_factory=dict)
    floor: int = 0
    deleted_below: int = 0
    sources: dict[str, Source] = field(default_factory=dict)
    acls: dict[Key, Acl] = field(default_factory=dict)
    unsettled: list[dict[Key, Acl]] = field(default_factory=list)
    pending: list[Published | Deleted] = field(default_factory=list)

    # --- what happens to it -------------------------------------------------------------

    def tick(self) -> bool:
        """Take what is pending, in order. Whether the clock moved: it stands when nothing differs."""
        content, versions = dict(self.content[self.head]), dict(self.versions[self.head])
        acls = dict(self.acls)
        for event in self.pending:
            replaced = event.replaced if isinstance(event, Published) else None
            for key in [key for key in content if key[0] == event.source]:
                if replaced is None or key[1] in replaced:
                    del content[key]
            if isinstance(event, Deleted):
                versions.pop(event.source, None)
                versions |= _only(self.versions[self.head], event.source)
                continue
            versions[event.source] = event.version
            for document in event.documents:
                content[event.source, document.path] = document
                acls[event.source, document.path] = document.acl
        self.pending.clear()
        moved = (content, versions) != (self.content[self.head], self.versions[self.head]) or any(
            acls[key] != self.acls[key] for key in {version.key for version in self.stored()}
        )
        if moved:
            self.unsettled.append(self.acls)
            self._advance(content, versions)
        self.acls = acls
        return moved

    def serve(self) -> None:
        """What the clock holds is served, by the profile that serves or, first, the pinned one."""
        if self.head and self.head not in self.served:
            self.served[self.head] = self.serving_profile
        self.unsettled.clear()

    def rebuilt(self, profile: str | None) -> None:
        """A rebuild ticks too; nothing differs in its revision."""
        self._advance(self.content[self.head], self.versions[self.head])
        self.served[self.head] = self.profile = profile
        self.unsettled.clear()

    def mark_collected(self, keep: int) -> int:
        """Only the last ``keep`` served revisions can be pinned from now on; the oldest of them."""
        oldest = min(sorted(self.served)[-keep:], default=0)
        self.floor = max(self.floor, oldest)
        return oldest

    def delete_below(self, revision: int) -> None:
        """What no revision from this one on sees is gone."""
        self.deleted_below = max(self.deleted_below, revision)

    def _advance(self, content: Mapping[Key, Document], versions: Mapping[str, str]) -> None:
        self.head += 1
        self.content[self.head], self.versions[self.head] = content, versions

    # --- what it holds ------------------------------------------------------------------

    @property
    def serving_profile(self) -> str | None:
        return self.served[max(self.served)] if self.served else self.profile

    @property
    def is_settled(self) -> bool:
        return not self.head or self.head in self.served

    def announced(self, source: str) -> frozenset[str]:
        """The paths of a source once all that is pending was taken."""
        paths = {path for name, path in self.content[self.head] if name == source}
        for event in self.pending:
            if event.source == source:
                replaced = event.replaced if isinstance(event, Published) else None
                paths = set() if replaced is None else paths - replaced
                if isinstance(event, Published):
                    paths |= {document.path for document in event.documents}
        return frozenset(paths)

    def read_at(self, pin: int | None) -> int | None:
        """The revision that a question reads: the greatest served one, not beyond its pin."""
        return max((r for r in self.served if pin is None or r <= pin), default=None)

    def is_shown_in(self, project: str) -> bool:
        return self.project == project or any(s.project == project for s in self.sources.values())

    def stored(self) -> Iterator[Version]:
        """Every version that is still kept, from the revisions compared one by one."""
        open_since: dict[Key, int] = {}
        for revision in range(1, self.head + 2):
            now = self.content.get(revision, {})
            before = self.content[revision - 1]
            for key, document in before.items():
                if now.get(key) != document or revision > self.head:
                    to_rev = OPEN if revision > self.head else revision
                    if to_rev > self.deleted_below:
                        yield Version(key, open_since.pop(key), to_rev)
            for key, document in now.items():
                if before.get(key) != document:
                    open_since[key] = revision

    def held(self, created: int, applied: int) -> Counter[tuple[int, int, Acl]]:
        """What a generation made at ``created`` holds at ``applied``: from, to and ACL."""
        return Counter(
            (
                version.from_rev,
                version.to_rev if version.to_rev <= applied else OPEN,
                self.acls[version.key],
            )
            for version in self.stored()
            if version.from_rev <= applied and version.to_rev > created
        )

    # --- what it answers ----------------------------------------------------------------

    def answer(
        self, asker: Asker, wanted: Wanted, pin: int | None = None, *, vectors: bool = False
    ) -> tuple[set[Cited], set[Cited]]:
        """What must be found, and what may be: they differ only while an index is behind in ACLs.

        ``vectors`` asks by meaning alone: where there is no profile, that finds nothing.
        """
        revision = self.read_at(pin)
        if revision is None or (vectors and self.served[revision] is None):
            return set(), set()
        found = {
            key: document
            for key, document in self.content[revision].items()
            if self._is_readable(key[0], asker)
            and _admits(self.acls[key], asker)
            and wanted.admits(key, document)
        }
        certain = {
            key for key in found if all(_admits(acls[key], asker) for acls in self.unsettled)
        }
        cited = {key: self._cite(key, document, revision) for key, document in found.items()}
        return {cited[key] for key in certain}, set(cited.values())

    def _is_readable(self, name: str, asker: Asker) -> bool:
        source = self.sources[name]
        return (
            source.project == asker.project and not source.is_deleted and _admits(source.acl, asker)
        )

    def _cite(self, key: Key, document: Document, revision: int) -> Cited:
        version = self.versions[revision][key[0]]
        profile = self.served[revision]
        return Cited(self.slug, *key, document.text, version, revision, profile)


def _admits(acl: Acl, asker: Asker) -> bool:
    return acl is None or any(entry in asker.entries for entry in acl)


def _only(versions: Mapping[str, str], source: str) -> dict[str, str]:
    return {source: versions[source]} if source in versions else {}
