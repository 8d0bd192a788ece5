"""Answers cut to what an agent needs, and as text for a model: a fact or a passage at a time.

Everything that somebody else wrote stands under the notice that it is data, and cannot make a
line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from knowledge.model.fact import name_key
from knowledge.text.lines import one_line

Answer = Mapping[str, Any]

_CITED: Final = (
    "collection",
    "path",
    "lines",
    "sourceId",
    "sourceVersion",
    "chunkId",
    "factId",
    "domain",
    "validFrom",
    "validTo",
    "indexRevision",
    "embeddingProfileVersion",
    "trustTier",
    "score",
)
_TURN: Final = ("speaker", "session", "time")
_NAME_CHARS: Final = 200
_LINE_CHARS: Final = 2000


# --- knowledge_search -------------------------------------------------------------------


def shape_search(answer: Answer) -> dict[str, Any]:
    """Candidates with text and citation, of turns with who spoke, and the legs that did not go well."""
    return {
        "candidates": [
            {
                "text": candidate["text"],
                "title": candidate["title"],
                **_turn(candidate),
                "citation": _present(candidate["citation"], _CITED),
            }
            for candidate in answer["candidates"]
        ],
        "legs": [
            _present(leg, ("leg", "collection", "state", "reason"))
            for leg in answer["legs"]
            if leg["state"] != "ok"
        ],
        **_present(
            answer,
            ("degraded", "confidence", "lowSupport", "scope", "asOf", "queryId", "notice"),
        ),
    }


def _turn(candidate: Answer) -> dict[str, Any]:
    """``metadata`` of a turn of a conversation: what it is cited by beside its source."""
    told = _present(candidate.get("metadata") or {}, _TURN)
    return {"metadata": told} if "speaker" in told and "session" in told else {}


def render_search(answer: Answer) -> str:
    found = answer["candidates"]
    scope = answer["scope"]
    lines = [
        f"{_plural(len(found), 'result')} in project {scope['projectId']}. {answer['notice']}",
        *_support_lines(answer),
        *(_leg_line(leg) for leg in answer["legs"] if leg["state"] != "skipped"),
    ]
    for number, candidate in enumerate(found, start=1):
        lines += [f"[{number}] {_place(candidate)}", _indented(candidate["text"])]
    return "\n".join(lines)


def _support_lines(answer: Answer) -> Iterable[str]:
    if answer.get("lowSupport"):
        yield (
            f"low support: confidence {answer['confidence']:.2f} of 1; what was found may not answer"
            " the question"
        )


def _leg_line(leg: Answer) -> str:
    where = f" of {leg['collection']}" if "collection" in leg else ""
    reason = f": {one_line(leg['reason'], _NAME_CHARS)}" if "reason" in leg else ""
    return f"Not searched in full: {leg['leg']}{where} {leg['state']}{reason}"


def _place(candidate: Answer) -> str:
    cited = candidate["citation"]
    lines = cited.get("lines")
    where = one_line(cited.get("path") or candidate["title"], _NAME_CHARS)
    turn = candidate.get("metadata", {})
    parts = (
        str(turn["speaker"]) if turn else None,
        f"session {turn['session']}" if turn else None,
        str(turn["time"]) if "time" in turn else None,
        cited.get("collection"),
        f"r{cited['indexRevision']}" if "indexRevision" in cited else None,
        cited.get("embeddingProfileVersion"),
        _window(cited) or None,
        f"{cited.get('sourceId')}@{str(cited.get('sourceVersion'))[:19]}",
        cited["trustTier"],
        f"{cited['score']:.2f}",
    )
    known = one_line(", ".join(part for part in parts if part), _LINE_CHARS)
    return f"{where}{f':{lines[0]}-{lines[1]}' if lines else ''} ({known})"


# --- memory -----------------------------------------------------------------------------


def render_recall(answer: Answer) -> str:
    if answer.get("skipped"):
        return f"Nothing was recalled: {one_line(answer['skipped'], _NAME_CHARS)}"
    return "\n".join([*_memory_head(answer), *_entity_lines(answer), *_fact_lines(answer)])


def render_nodes(answer: Answer) -> str:
    if answer.get("skipped"):
        return f"Nothing was searched: {one_line(answer['skipped'], _NAME_CHARS)}"
    return "\n".join([*_memory_head(answer), *_entity_lines(answer)])


def render_subgraph(answer: Answer) -> str:
    unknown = _unknown(answer)
    known = [entity for entity in answer["entities"] if entity not in unknown]
    shown = {**answer, "entities": known}
    names = "; ".join(one_line(entity["name"], _NAME_CHARS) for entity in unknown)
    missing = [f"not in the memory: {names}"] if unknown else []
    return "\n".join([*_memory_head(shown), *missing, *_entity_lines(shown), *_fact_lines(shown)])


def _unknown(answer: Answer) -> list[Answer]:
    """Entities that were asked for and that no fact names. Where facts were left out, for the limits
    or the scope, nobody can tell: none."""
    if answer.get("truncated") or answer.get("dropped"):
        return []
    named = {name_key(fact[end]) for fact in answer["facts"] for end in ("subject", "object")}
    return [
        entity
        for entity in answer["entities"]
        if entity.get("distance") == 0
        and not entity.get("type")
        and name_key(entity["name"]) not in named
    ]


def _memory_head(answer: Answer) -> Iterable[str]:
    can_read = answer.get("factsReadable", True)
    facts = answer.get("facts") if can_read else None
    found = _plural(len(answer["entities"]), "entity", "entities")
    if facts is not None:
        found = f"{_plural(len(facts), 'fact')}, {found}"
    yield f"{found} from memory {answer.get('namespace') or ''}. {answer['notice']}"
    if answer.get("modeReason"):
        told = "By name only" if can_read else "Facts cannot be read now"
        yield f"{told}: {one_line(answer['modeReason'], _NAME_CHARS)}"
    if answer.get("truncated"):
        yield f"{_plural(answer['truncated'], 'more fact')} left out."
    if answer.get("dropped"):
        yield f"{_plural(answer['dropped'], 'hit')} dropped: out of scope."


def _entity_lines(answer: Answer) -> Iterable[str]:
    if not answer["entities"]:
        return
    shown = (
        one_line(entity["name"], _NAME_CHARS)
        + (f" ({one_line(entity['type'], _NAME_CHARS)})" if entity.get("type") else "")
        for entity in answer["entities"]
    )
    yield f"Entities: {'; '.join(shown)}"


def _fact_lines(answer: Answer) -> Iterable[str]:
    for fact in answer["facts"]:
        names = (one_line(fact[part], _NAME_CHARS) for part in ("subject", "predicate", "object"))
        confidence = fact.get("confidence")
        contradicts = fact.get("contradicts")
        parts = (
            _window(fact),
            fact["trustTier"],
            "verified" if fact.get("verified") else "",
            "" if confidence in (None, 1) else f"confidence {confidence}",
            f"session {fact['sessionId']}" if fact.get("sessionId") else "",
            f"source {fact['sourceId']}" if fact.get("sourceId") else "",
            "contradicts others" if contradicts else "",
            str(fact["factId"]),
        )
        known = one_line(", ".join(part for part in parts if part), _LINE_CHARS)
        yield f"- {' '.join(names)} ({known})"


def render_upsert(answer: Answer) -> str:
    counts = answer["counts"]
    told = ", ".join(f"{counts.get(name, 0)} {name}" for name in counts)
    return "\n".join(
        [
            f"Memory {answer.get('namespace') or ''}: {told}",
            *(
                f"refused [{entry['index']}]: {one_line(entry['reason'], _LINE_CHARS)}"
                for entry in answer.get("refused", ())
            ),
        ]
    )


def render_offload(answer: Answer) -> str:
    reason = answer.get("extractorReason")
    by = f" by {answer['extractor']}" if answer.get("extractor") else ""
    why = f" ({one_line(reason, _NAME_CHARS)})" if reason else ""
    return f"Job {answer['jobId']} is {answer['state']}; facts are extracted{by}{why}."


def render_status(answer: Answer) -> str:
    facts = answer.get("facts") or {}
    counted = ", ".join(f"{count} {name}" for name, count in facts.items())
    reason = f": {one_line(answer['reason'], _LINE_CHARS)}" if answer.get("reason") else ""
    return f"Job {answer['jobId']} is {answer['state']}{reason}{f'; {counted}' if counted else ''}"


# --- parts ------------------------------------------------------------------------------


def _present(value: Answer, names: Iterable[str]) -> dict[str, Any]:
    """These fields, where they say something."""
    return {name: value[name] for name in names if value.get(name) is not None}


def _window(fact: Answer) -> str:
    """Half-open, as dates: a time of day says little to a reader."""
    begin, end = ((fact.get(name) or "")[:10] for name in ("validFrom", "validTo"))
    return f"{begin or 'always'} until {end}" if end else (f"since {begin}" if begin else "")


def _indented(text: str) -> str:
    return "\n".join(f"  {one_line(line, _LINE_CHARS)}" for line in text.splitlines())


def _plural(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
