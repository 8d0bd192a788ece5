"""Turns are found with the turns around them, on every backend, and cited alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.errors import InvalidSnapshot
from knowledge.home import Home
from knowledge.model.chunk import Chunk
from knowledge.model.collection import Collection
from knowledge.profiles.registry import Profiles
from knowledge.publishing.announcing import Announcement, announce
from knowledge.retrieval.answer import Candidate
from knowledge.retrieval.request import Filters, SearchRequest
from knowledge.runtime import Runtime
from knowledge.settings import ProfileSettings
from knowledge.stack.cache import cache_folder
from knowledge.storage.snapshot_writer import SnapshotWriter
from knowledge.storage.snapshots import SnapshotSource
from tests.asking import Asker, asking, caller_of
from tests.profiles.test_onnx import write_folder
from tests.publication import announce_documents, collection_of, index, publish_documents
from tests.storage.conftest import BACKENDS

COMPASS = "compass@1"
FILLER = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True, slots=True)
class Talk:
    """A tenant on one backend, with questions asked of it."""

    runtime: Runtime
    asker: Asker
    tenant: str

    def collection(self, slug: str = "talk", **options: Any) -> Collection:
        return collection_of(self.runtime, self.tenant, slug, **{"kind": "conversation", **options})

    def ask(self, query: str, *, groups: Sequence[str] = (), **fields: Any) -> list[Candidate]:
        caller = caller_of(self.runtime, self.tenant, groups=groups)
        request = SearchRequest(query, "p1", **{"top_k": 100, "explain": True, **fields})
        answer = self.asker.ask(caller, request)
        assert not answer.degraded
        assert not answer.foreign_dropped
        return list(answer.chunks)

    def paths(self, query: str, **fields: Any) -> list[str]:
        return [found.citation.path for found in self.ask(query, **fields)]


@pytest.fixture(params=BACKENDS)
def talk(
    request: pytest.FixtureRequest, home: Home, runtime: Runtime, tenant: str, tmp_path: Path
) -> Iterator[Talk]:
    made = BACKENDS[request.param](home, runtime)
    compass = ProfileSettings(provider="onnx", folder=str(write_folder(tmp_path / "compass")))
    settings = runtime.settings.model_copy(update={"profiles": {COMPASS: compass}})
    used = replace(
        runtime,
        index=made.index,
        settings=settings,
        profiles=Profiles(settings, cache_folder()),
    )
    try:
        with asking(used, made.search()) as asker:
            yield Talk(used, asker, tenant)
    finally:
        made.index.close()


def turn(name: str, text: str, **fields: Any) -> dict[str, Any]:
    metadata = {
        "speaker": fields.pop("speaker", "Ada"),
        "session": fields.pop("session", "1"),
        "time": fields.pop("time", "2026-05-01T09:30:00Z"),
    }
    return {"id": name, "text": text, "metadata": metadata, **fields}


def session(said: Mapping[int, str], count: int = 9, **fields: Any) -> list[dict[str, Any]]:
    """Turns ``t1`` to ``t9`` that say a number each, and what is ``said`` besides."""
    return [
        turn(f"t{n}", f"{FILLER[n - 1]} {said.get(n, '')}".strip(), **fields)
        for n in range(1, count + 1)
    ]


def test_a_turn_is_found_by_the_words_around_it_and_cited_alone(talk: Talk) -> None:
    publish_documents(talk.runtime, talk.collection(), session({4: "zeppelin"}))
    found = talk.ask("zeppelin")
    assert found[0].citation.path == "t4"
    assert {one.citation.path for one in found} == {"t2", "t3", "t4", "t5", "t6"}
    assert [one.text for one in found if one.citation.path == "t3"] == ["three"]
    assert found[0].metadata["speaker"] == "Ada"
    assert found[0].metadata["session"] == "1"
    assert "fullText" in found[0].citation.signals
    assert all("fullText" not in one.citation.signals for one in found[1:])  # not its own words


def test_words_spread_over_a_window_find_the_turn_between_them(talk: Talk) -> None:
    said = {3: "zeppelin", 5: "lantern"}
    publish_documents(talk.runtime, talk.collection(), session(said))
    assert set(talk.paths("zeppelin lantern")[:3]) == {"t3", "t4", "t5"}


def test_meaning_around_a_turn_counts_too(talk: Talk) -> None:
    collection = talk.collection(profile=COMPASS)
    turns = [turn(f"t{n}", "east" if n < 5 else "north") for n in range(1, 10)]
    publish_documents(talk.runtime, collection, turns)
    found = {one.citation.path: one for one in talk.ask("east", rerank="none", top_k=9)}
    cosines = [found[f"t{n}"].citation.signals["vector"] for n in (1, 2, 3, 4)]
    assert cosines == pytest.approx([cosines[0]] * 4)  # alike by themselves
    ranks = {
        path: one.explanation.ranks["vector"] for path, one in found.items() if one.explanation
    }
    assert ranks["t2"] < ranks["t3"] < ranks["t4"]  # the nearer to north the less
    assert ranks["t5"] < ranks["t6"] < ranks["t7"] < ranks["t9"]


def test_a_window_ends_with_its_session_and_its_source(talk: Talk) -> None:
    collection = talk.collection()
    first, second = session({9: "zeppelin"}), session({}, session="2")
    second = [{**one, "id": f"second/{one['id']}"} for one in second]
    publish_documents(talk.runtime, collection, [*first, *second])
    other = [{**one, "id": f"other/{one['id']}"} for one in session({})]
    publish_documents(talk.runtime, collection, other, source="s2")
    assert set(talk.paths("zeppelin")) == {"t7", "t8", "t9"}


def test_the_same_turns_in_a_collection_of_documents_stay_documents(talk: Talk) -> None:
    publish_documents(talk.runtime, talk.collection(kind="documents"), session({4: "zeppelin"}))
    [found] = talk.ask("zeppelin")
    assert (found.citation.path, found.metadata["speaker"]) == ("t4", "Ada")
    assert found.explanation is not None
    assert found.explanation.prior == 0


# --- scope ------------------------------------------------------------------------------


def test_a_window_never_shows_a_turn_that_the_caller_may_not_read(talk: Talk) -> None:
    turns = session({4: "zeppelin", 6: "lantern"})
    turns[3]["acl"] = ["group:crew"]
    publish_documents(talk.runtime, talk.collection(), turns)
    assert talk.paths("zeppelin") == []
    assert set(talk.paths("zeppelin", groups=["crew"])) == {"t2", "t3", "t4", "t5", "t6"}
    # As if it were not there: the next ones count, and its words add nothing.
    by_lantern = talk.ask("lantern")
    assert {one.citation.path for one in by_lantern} == {"t3", "t5", "t6", "t7", "t8"}
    both = talk.ask("zeppelin lantern")
    assert [one.citation.path for one in both] == [one.citation.path for one in by_lantern]
    assert [one.citation.signals for one in both] == [one.citation.signals for one in by_lantern]


def test_what_is_closed_to_a_caller_later_leaves_the_windows_of_pinned_answers(
    talk: Talk,
) -> None:
    collection, turns = talk.collection(), session({4: "zeppelin"})
    publish_documents(talk.runtime, collection, turns)
    assert talk.paths("zeppelin", pinned={"talk": 1})
    turns[3]["acl"] = ["group:crew"]
    publish_documents(talk.runtime, collection, turns)
    assert talk.paths("zeppelin", pinned={"talk": 1}) == []
    assert "t3" in talk.paths("zeppelin", pinned={"talk": 1}, groups=["crew"])


def test_another_source_or_project_gives_nothing_to_a_window(talk: Talk) -> None:
    collection = talk.collection()
    publish_documents(talk.runtime, collection, session({}))
    hidden = [{**one, "id": f"hidden/{one['id']}"} for one in session({4: "zeppelin"})]
    publish_documents(talk.runtime, collection, hidden, source="s2", acl=("group:crew",))
    assert talk.paths("zeppelin") == []
    assert len(talk.paths("zeppelin", groups=["crew"])) == 5


def test_filters_choose_what_is_answered_and_not_what_a_window_holds(talk: Talk) -> None:
    turns = session({4: "zeppelin"})
    turns[4]["tags"] = ["kept"]
    turns[3]["tags"] = ["kept"]
    publish_documents(talk.runtime, talk.collection(), turns)
    assert talk.paths("zeppelin", filters=Filters(tags=("kept",))) == ["t4", "t5"]


# --- time -------------------------------------------------------------------------------


def _told(found: Sequence[Candidate]) -> list[tuple[str, float]]:
    return [(one.citation.path, one.citation.score) for one in found]


def test_turns_appended_by_a_delta_change_the_windows_next_to_them_and_nothing_else(
    talk: Talk,
) -> None:
    collection = talk.collection()
    publish_documents(talk.runtime, collection, session({1: "lantern"}))
    before = _told(talk.ask("lantern"))
    more = [turn("t10", "zeppelin"), turn("t11", "eleven")]
    ticked = publish_documents(talk.runtime, collection, more, mode="delta")
    assert (ticked.opened, ticked.closed) == (2, 0)
    assert set(talk.paths("zeppelin")) == {"t8", "t9", "t10", "t11"}
    assert _told(talk.ask("lantern")) == before
    assert _told(talk.ask("lantern", pinned={"talk": 1})) == before
    assert talk.paths("zeppelin", pinned={"talk": 1}) == []


@pytest.mark.parametrize("mode", ["full", "delta"])
def test_a_turn_put_in_between_is_the_only_one_written(talk: Talk, mode: str) -> None:
    collection, turns = talk.collection(), session({4: "zeppelin"})
    publish_documents(talk.runtime, collection, turns)
    pinned = _told(talk.ask("zeppelin"))
    ticked = publish_documents(
        talk.runtime, collection, [*turns[:4], turn("new", "ten"), *turns[4:]], mode=mode
    )
    assert (ticked.opened, ticked.closed) == (1, 0)
    assert set(talk.paths("zeppelin")) == {"t2", "t3", "t4", "new", "t5"}
    assert _told(talk.ask("zeppelin", pinned={"talk": 1})) == pinned


def test_a_turn_that_goes_or_moves_lets_others_move_up(talk: Talk) -> None:
    collection, turns = talk.collection(), session({4: "zeppelin"})
    publish_documents(talk.runtime, collection, turns)
    pinned = _told(talk.ask("zeppelin"))
    gone = publish_documents(talk.runtime, collection, [*turns[:4], *turns[5:]])
    assert (gone.opened, gone.closed) == (0, 1)
    assert set(talk.paths("zeppelin")) == {"t2", "t3", "t4", "t6", "t7"}
    moved = publish_documents(
        talk.runtime, collection, [turns[8], *turns[:4], *turns[5:8]], mode="delta"
    )
    assert (moved.opened, moved.closed) == (1, 1)
    assert set(talk.paths("t4 zeppelin nine")) >= {"t9", "t1"}
    assert _told(talk.ask("zeppelin", pinned={"talk": 1})) == pinned


def test_several_deltas_taken_at_once_keep_their_order(talk: Talk) -> None:
    collection, turns = talk.collection(), session({4: "zeppelin"})
    announce_documents(talk.runtime, collection, turns)
    more = [turn("t10", "ten"), turn("t11", "lantern")]
    announce_documents(talk.runtime, collection, more, mode="delta")
    between = [turns[3], turn("new", "twelve"), turns[4]]
    announce_documents(talk.runtime, collection, between, mode="delta")
    index(talk.runtime, collection)
    assert set(talk.paths("zeppelin")) == {"t2", "t3", "t4", "new", "t5"}
    assert set(talk.paths("lantern")) == {"t9", "t10", "t11"}


# --- priors -----------------------------------------------------------------------------


def _priors(found: Sequence[Candidate]) -> dict[str, float]:
    return {one.citation.path: one.explanation.prior for one in found if one.explanation}


def test_the_one_speaker_who_is_named_is_preferred_and_a_question_stands_back(talk: Talk) -> None:
    turns = [
        turn("a", "the zeppelin landed", speaker="Ada Byron"),
        turn("b", "which zeppelin? ", speaker="Grace"),
        turn("c", "the old zeppelin", speaker="Grace"),
    ]
    publish_documents(talk.runtime, talk.collection(), turns)
    assert _priors(talk.ask("zeppelin")) == {"a": 0.0, "b": -0.25, "c": 0.0}
    assert _priors(talk.ask("What is Ada's zeppelin?")) == {"a": 0.5, "b": -0.25, "c": 0.0}
    assert _priors(talk.ask("did Grace see a zeppelin")) == {"a": 0.0, "b": 0.25, "c": 0.5}
    assert _priors(talk.ask("zeppelin of Ada Byron and Grace")) == {"a": 0, "b": -0.25, "c": 0}


def test_a_turn_of_the_month_that_is_named_is_preferred(talk: Talk) -> None:
    turns = [
        turn("may", "the zeppelin landed"),
        turn("june", "the zeppelin landed", time="2026-06-02"),
    ]
    publish_documents(talk.runtime, talk.collection(), turns)
    assert _priors(talk.ask("zeppelin in June 2026")) == {"may": 0.0, "june": 1.5}


# --- the rest of an answer ---------------------------------------------------------------


def test_more_answers_come_at_the_end(talk: Talk) -> None:
    turns = session(dict.fromkeys((1, 4, 9), "zeppelin"))
    publish_documents(talk.runtime, talk.collection(), turns)
    longest = _told(talk.ask("zeppelin"))
    for top_k in (1, 3, 6):
        assert _told(talk.ask("zeppelin", top_k=top_k)) == longest[:top_k]


def test_turns_and_documents_are_answered_side_by_side(talk: Talk) -> None:
    publish_documents(talk.runtime, talk.collection(), session({4: "zeppelin"}))
    handbook = [{"id": "zeppelin.md", "text": "a zeppelin"}, {"id": "other.md", "text": "other"}]
    publish_documents(talk.runtime, talk.collection("docs", kind="documents"), handbook)
    found = talk.paths("zeppelin")
    assert set(found) == {"zeppelin.md", "t2", "t3", "t4", "t5", "t6"}
    assert set(found[:2]) == {"zeppelin.md", "t4"}


def test_a_chunk_that_is_no_turn_is_rejected_with_its_snapshot(talk: Talk) -> None:
    collection = talk.collection()
    with SnapshotWriter(
        talk.runtime.home.snapshots_dir,
        tenant_id=talk.tenant,
        project_id="p1",
        collection="talk",
        mode="full",
    ) as writer:
        writer.add("s1", "v1", Chunk(path="a.md", anchor="", title="", text="no turn"))
        snapshot = writer.finish(
            [SnapshotSource(source_id="s1", source_version="v1", chunk_count=1)], {}
        )
    announce(talk.runtime.app, collection, Announcement(snapshot))
    with pytest.raises(InvalidSnapshot, match=r"chunk of 'a\.md': a turn needs metadata\.speaker"):
        index(talk.runtime, collection)
    publish_documents(talk.runtime, collection, session({4: "zeppelin"}))
    assert talk.paths("zeppelin")
