"""Names that were merged: which entity a mention stands for, and under which names it is told.

A merge says that one end (a name, perhaps of one type) is another end of the same namespace. A
mention or an end without a type is one of every type of its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from knowledge.model.fact import EntityName


@dataclass(frozen=True, order=True, slots=True)
class Mention:
    """A name by its key, and the type it is said to have; None is any type."""

    key: str
    type: str | None = None

    def may_be(self, other: Mention) -> bool:
        """Whether both can be meant by one mention."""
        types = {self.type, other.type}
        return self.key == other.key and (len(types) == 1 or None in types)


@dataclass(frozen=True, slots=True)
class Merge:
    """``name`` stands for ``into``, in one namespace."""

    namespace: str
    name: Mention
    into: Mention


@dataclass(frozen=True, slots=True)
class SameEntity:
    """One name of an entity that goes by several within a namespace.

    ``asked`` and ``asked_type`` are what it was found from, ``root_key`` and ``root_type`` what
    all names of the entity were merged into.
    """

    asked: str
    asked_type: str | None
    namespace: str
    key: str
    type: str | None
    root_key: str
    root_type: str | None

    @property
    def is_asked(self) -> bool:
        """Whether what was asked finds this name's facts anyway."""
        return self.key == self.asked and self.asked_type in (None, self.type)


class Merges:
    """Merges in force: for each name of interest all that are connected with it."""

    def __init__(self, merges: Iterable[Merge] = ()) -> None:
        self.all = frozenset(merges)
        self._up: defaultdict[tuple[str, str], list[Merge]] = defaultdict(list)
        self._down: defaultdict[tuple[str, str], list[Merge]] = defaultdict(list)
        self._namespaces: defaultdict[str, set[str]] = defaultdict(set)
        self._told_apart: set[tuple[str, str]] = set()
        for merge in sorted(self.all, key=_order):
            self._up[merge.namespace, merge.name.key].append(merge)
            self._down[merge.namespace, merge.into.key].append(merge)
            for end in (merge.name, merge.into):
                self._namespaces[end.key].add(merge.namespace)
                if end.type is not None:
                    self._told_apart.add((merge.namespace, end.key))

    def is_ambiguous(self, namespace: str, mention: Mention) -> bool:
        """Whether it has no type where merges tell the types of its name apart."""
        return mention.type is None and (namespace, mention.key) in self._told_apart

    def same(self, asked: EntityName) -> list[SameEntity]:
        """Every name of the entities that the asked name may stand for, in order of all fields.

        Nothing in a namespace where it was not merged.
        """
        mention = Mention(asked.key, asked.type)
        found = {
            SameEntity(asked.key, asked.type, namespace, *_pair(member), *_pair(root))
            for namespace in self._where(asked)
            for root in self.roots(namespace, mention)
            for member in self._members(namespace, root)
        }
        return sorted(found, key=_fields)

    def names(self, asked: EntityName) -> list[EntityName]:
        """The names that facts about the asked one may be told under, its own first."""
        merged = [
            EntityName(same.key, same.namespace, same.type)
            for same in self.same(asked)
            if not same.is_asked
        ]
        return list(dict.fromkeys([asked, *merged]))

    def entity(self, namespace: str, mention: Mention) -> Mention:
        """The one entity that a mention is taken for, with a type where merges tell types apart.

        A mention without a type is the one entity its name was merged with; where there are
        several it stays what it is: a name of all of them.
        """
        if mention.type is not None:
            return self._named(namespace, min(self.roots(namespace, mention), key=_type_first))
        roots = set(self.roots(namespace, mention))
        for merge in self._down.get((namespace, mention.key), ()):
            if merge.into.type is not None:
                roots |= set(self.roots(namespace, merge.into))
        merged = {self._named(namespace, root) for root in roots - {mention}}
        return merged.pop() if len(merged) == 1 else mention

    def entity_of(self, key: str) -> Mention:
        """As `entity`, for a name of whatever namespace."""
        asked = EntityName(key)
        found = {self.entity(namespace, Mention(key)) for namespace in self._where(asked)}
        return found.pop() if len(found) == 1 else Mention(key)

    def roots(self, namespace: str, mention: Mention) -> list[Mention]:
        """What a mention was merged into at last; itself where it was not.

        A mention without a type stays one of its own beside merges of single types.
        """
        ways = list(self._ways_up(namespace, mention))
        roots = {way for way in ways if not self._is_covered(namespace, way)}
        return sorted(roots or {ways[0]}, key=_type_first)

    def leads_to(self, namespace: str, start: Mention, end: Mention) -> bool:
        """Whether a mention was merged, in one step or several, into another."""
        _itself, *others = self._ways_up(namespace, start)
        return any(other.may_be(end) for other in others)

    def _where(self, asked: EntityName) -> list[str]:
        here = self._namespaces.get(asked.key, set())
        return sorted(here if asked.namespace is None else here & {asked.namespace})

    def _ways_up(self, namespace: str, mention: Mention) -> Iterator[Mention]:
        """The mention, and everything that it was merged into on the way."""
        seen, waiting = {mention}, [mention]
        for at in waiting:  # which grows meanwhile
            yield at
            for merge in self._up.get((namespace, at.key), ()):
                if merge.name.may_be(at):
                    into = _across(merge.name, merge.into, at)
                    if into not in seen:
                        seen.add(into)
                        waiting.append(into)

    def _is_covered(self, namespace: str, mention: Mention) -> bool:
        """Whether merges take the whole mention elsewhere."""
        return any(
            merge.name.type in (None, mention.type)
            and _across(merge.name, merge.into, mention) != mention
            for merge in self._up.get((namespace, mention.key), ())
        )

    def _members(self, namespace: str, root: Mention) -> list[Mention]:
        seen, waiting = {root}, [root]
        for at in waiting:  # which grows meanwhile
            for merge in self._down.get((namespace, at.key), ()):
                if merge.into.may_be(at):
                    name = _across(merge.into, merge.name, at)
                    if name not in seen:
                        seen.add(name)
                        waiting.append(name)
        return waiting

    def _named(self, namespace: str, root: Mention) -> Mention:
        is_apart = (namespace, root.key) in self._told_apart
        return root if is_apart else Mention(root.key)


def _across(near: Mention, far: Mention, at: Mention) -> Mention:
    """The far end of a merge, seen from a mention at its near end: whole names keep the type."""
    return Mention(far.key, at.type) if near.type is far.type is None else far


def _pair(mention: Mention) -> tuple[str, str | None]:
    return mention.key, mention.type


def _type_first(mention: Mention) -> tuple[str, str]:
    return mention.key, mention.type or ""


def _order(merge: Merge) -> tuple[object, ...]:
    return (merge.namespace, *_type_first(merge.name), *_type_first(merge.into))


def _fields(same: SameEntity) -> tuple[str, ...]:
    ends = (same.asked_type, same.namespace, same.key, same.type, same.root_key, same.root_type)
    return (same.asked, *(value or "" for value in ends))
