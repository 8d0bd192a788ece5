from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from knowledge.errors import InvalidInput
from knowledge.retrieval.evaluation import judge, read_questions
from tests.cli.conftest import Index, Knowledge

Options = tuple[str, ...]


def test_metrics_equal_a_hand_computed_example() -> None:
    # Grades 3, 2, 1; found at ranks 2 and 4, the third at rank 11.
    paths = ["x1", "a", "x2", "b", *(f"y{n}" for n in range(6)), "c"]
    found = judge(paths, {"a": 3, "b": 2, "c": 1, "d": 0})
    dcg = 3 / math.log2(3) + 2 / math.log2(5)
    ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert dcg == pytest.approx(2.7541, abs=1e-4)
    assert ideal == pytest.approx(4.7619, abs=1e-4)
    assert found.ndcg_at_10 == pytest.approx(dcg / ideal)
    assert found.recall_at_10 == pytest.approx(2 / 3)
    assert found.recall_at_100 == 1
    assert found.mrr == 1 / 2


def test_a_perfect_answer_scores_1_and_an_empty_one_0() -> None:
    perfect = judge(["a", "b"], {"b": 1, "a": 2})
    assert (perfect.ndcg_at_10, perfect.recall_at_10, perfect.mrr) == (1, 1, 1)
    empty = judge([], {"a": 1})
    assert (empty.ndcg_at_10, empty.recall_at_10, empty.recall_at_100, empty.mrr) == (0, 0, 0, 0)


def test_the_ideal_counts_10_ranks_and_recall_all_relevant_paths() -> None:
    grades = dict.fromkeys(map(str, range(20)), 1.0)
    found = judge(list(grades)[:10], grades)
    assert found.ndcg_at_10 == pytest.approx(1)
    assert found.recall_at_10 == 0.5


def test_a_relevant_path_behind_rank_100_counts_for_nothing() -> None:
    found = judge([*(f"x{n}" for n in range(100)), "a"], {"a": 1})
    assert (found.recall_at_100, found.mrr) == (0, 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "a question must be a JSON object"),
        ('{"text": "q", "qrels": {"a": 1}}', "_id is missing, empty or not a string"),
        ('{"_id": "2", "text": " ", "qrels": {"a": 1}}', "text is missing, empty"),
        ('{"_id": "2", "text": "q"}', "qrels must be an object of path to grade"),
        ('{"_id": "2", "text": "q", "qrels": {"a": "1"}}', "qrels must be an object"),
        ('{"_id": "2", "text": "q", "qrels": {"a": true}}', "qrels must be an object"),
        ('{"_id": "2", "text": "q", "qrels": {"a": -1}}', "qrels must be an object"),
        ('{"_id": "2", "text": "q", "qrels": {"a": 0}}', "qrels names no relevant path"),
        ('{"_id": "1", "text": "q", "qrels": {"a": 1}}', "_id '1' is used before"),
    ],
)
def test_a_wrong_question_names_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "1", "text": "q", "qrels": {"a": 1}}\n\n' + line + "\n")
    with pytest.raises(InvalidInput) as refused:
        read_questions(path)
    assert refused.value.message.startswith(f"{path}, line 3: {message}")


def test_questions_are_read_compressed_and_limited(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl.gz"
    lines = [json.dumps({"_id": str(n), "text": "q", "qrels": {"a": 1}}) for n in range(5)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert [question.question_id for question in read_questions(path, 2)] == ["0", "1"]
    path.write_bytes(b"no gzip")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_questions(path)


def test_eval_measures_every_leg_the_fusion_and_the_answer(
    knowledge: Knowledge, docs: Options, folder: Path, tmp_path: Path, tenant: str, index: Index
) -> None:
    knowledge("publish", folder, *docs)
    index(tenant, "docs")
    arguments = ("--tenant", tenant, "--projects", "p1", "--json")
    client = knowledge("clients", "create", *arguments).json["clientId"]
    queries = tmp_path / "queries.jsonl"
    queries.write_text(
        '{"_id": "1", "text": "heartbeat", "qrels": {"lease.md": 1}}\n'
        '{"_id": "2", "text": "zeppelin", "qrels": {"clock.md": 1}}\n'
    )
    options = (*docs, "--queries", queries, "--as", client)

    measured = knowledge("eval", *options, "--json").json
    assert (measured["questions"], measured["collection"]) == (2, "docs")
    by_name = {result["name"]: result for result in measured["results"]}
    assert list(by_name) == ["vector", "fullText", "metadata", "fusion", "answer"]
    for name in ("fullText", "fusion", "answer"):
        assert by_name[name]["ndcgAt10"] == 0.5
        assert by_name[name]["recallAt10"] == 0.5
        assert by_name[name]["mrr"] == 0.5
        assert by_name[name]["degraded"] == 0
    assert by_name["vector"]["ndcgAt10"] is None
    assert "no embedding profile" in by_name["vector"]["reason"]

    shown = knowledge("eval", *options, "--limit", "1").out
    assert shown.startswith(f"1 question to {tenant}/docs\n")
    answer = next(line for line in shown.splitlines() if line.startswith("answer"))
    assert answer.split()[1:5] == ["1.0000"] * 4


def test_eval_without_a_client_reads_what_everyone_may_and_leaves_no_client(
    knowledge: Knowledge, docs: Options, folder: Path, tmp_path: Path, tenant: str, index: Index
) -> None:
    knowledge("publish", folder / "lease.md", *docs)
    knowledge("publish", folder / "clock.md", *docs, "--acl", "group:clockmakers")
    index(tenant, "docs")
    queries = tmp_path / "queries.jsonl"
    queries.write_text(
        '{"_id": "1", "text": "heartbeat", "qrels": {"lease.md": 1}}\n'
        '{"_id": "2", "text": "clock", "qrels": {"clock.md": 1}}\n'
    )
    measured = knowledge("eval", *docs, "--queries", queries, "--json").json
    recalls = {result["name"]: result["recallAt10"] for result in measured["results"]}
    assert recalls["answer"] == 0.5
    assert knowledge("clients", "list", "--tenant", tenant, "--json").json == {"clients": []}

    place = ("--tenant", tenant, "--project", "nope", "--collection", "docs")
    failure = knowledge("eval", *place, "--queries", queries).failure
    assert failure == "there is no project nope"


def test_eval_of_an_unknown_collection_is_one_line(
    knowledge: Knowledge, docs: Options, tmp_path: Path, tenant: str
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "1", "text": "q", "qrels": {"a": 1}}\n')
    arguments = ("--tenant", tenant, "--projects", "p1", "--json")
    client = knowledge("clients", "create", *arguments).json["clientId"]
    place = ("--tenant", tenant, "--project", "p1", "--collection", "nope")
    failure = knowledge("eval", *place, "--queries", queries, "--as", client).failure
    assert failure == "there is no collection nope"
