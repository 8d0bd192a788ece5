"""``knowledge eval``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from knowledge.cli import options
from knowledge.cli.output import plural, print_json, table
from knowledge.cli.searching import named_or_temporary_caller, opened_searcher
from knowledge.cli.session import opened, progress
from knowledge.model.scope import Caller
from knowledge.retrieval.evaluation import Question, Result, evaluate, read_questions
from knowledge.retrieval.request import SearchRequest
from knowledge.runtime import Runtime


@click.command("eval")
@options.tenant
@options.project
@options.collection
@click.option(
    "--queries",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='.jsonl or .jsonl.gz of {"_id", "text", "qrels": {path: grade}}.',
)
@click.option("--as", "client", metavar="CLIENT", help="The client that asks (one in no group).")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N.")
@options.as_json
def eval_command(
    tenant: str,
    project: str,
    collection: str,
    queries: Path,
    client: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Measure each leg, the fusion and the answer on known questions.

    nDCG@10 has the grades as gains and log2(rank + 1) as discount. Only paths are judged: a path
    stands where its best chunk stands.
    """
    questions = read_questions(queries, limit)
    with (
        opened() as runtime,
        named_or_temporary_caller(runtime, tenant, project, client) as caller,
    ):
        results = asyncio.run(_evaluate(runtime, caller, project, collection, questions))
    if as_json:
        print_json(_wire(tenant, collection, results))
    else:
        click.echo(_text(tenant, collection, results))


async def _evaluate(
    runtime: Runtime,
    caller: Caller,
    project_id: str,
    collection: str,
    questions: Sequence[Question],
) -> list[Result]:
    request = SearchRequest(questions[0].text, project_id, collections=(collection,))
    async with opened_searcher(runtime, caller, request) as searcher:
        return await evaluate(
            searcher,
            caller,
            project_id=project_id,
            collection=collection,
            questions=questions,
            progress=progress(),
        )


def _text(tenant: str, collection: str, results: Sequence[Result]) -> str:
    header = ("", "nDCG@10", "recall@10", "recall@100", "MRR", "p50 ms", "seconds")
    rows = [
        (
            result.setup.name,
            *_numbers(result),
            f"{result.p50_ms:.1f}",
            f"{result.seconds:.1f}",
        )
        for result in results
    ]
    lines = [f"{plural(results[0].questions, 'question')} to {tenant}/{collection}", ""]
    lines.append(table(header, rows, numbers=6))
    lines += [f"{result.setup.name}: {result.reason}" for result in results if result.reason]
    lines += [
        f"{result.setup.name}: {result.degraded} of {result.questions} answers were degraded;"
        " its numbers are too low"
        for result in results
        if result.degraded
    ]
    return "\n".join(lines)


def _numbers(result: Result) -> tuple[str, ...]:
    metrics = result.metrics
    if metrics is None:
        return ("-",) * 4
    values = (metrics.ndcg_at_10, metrics.recall_at_10, metrics.recall_at_100, metrics.mrr)
    return tuple(f"{value:.4f}" for value in values)


def _wire(tenant: str, collection: str, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "tenantId": tenant,
        "collection": collection,
        "questions": results[0].questions,
        "results": [_result(result) for result in results],
    }


def _result(result: Result) -> dict[str, Any]:
    metrics = result.metrics
    return {
        "name": result.setup.name,
        "legs": [leg.value for leg in result.setup.legs],
        "ndcgAt10": metrics and metrics.ndcg_at_10,
        "recallAt10": metrics and metrics.recall_at_10,
        "recallAt100": metrics and metrics.recall_at_100,
        "mrr": metrics and metrics.mrr,
        "p50Ms": round(result.p50_ms, 2),
        "seconds": round(result.seconds, 2),
        "degraded": result.degraded,
        "reason": result.reason,
    }
