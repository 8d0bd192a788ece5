"""How Dagster shows checks: by group and severity, with a table and the ids of failing rows.

Each declared check runs by itself. A Dagster result of its own for each would cost every publish
two seconds and the event log fifty rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import dagster as dg

from dbt_like_checks import Check, Severity, Status
from knowledge.errors import ChecksFailed
from orchestration.checking import Looked
from orchestration.defs.partitions import collection_check

SUFFIXES: Final = {Severity.ERROR: "valid", Severity.WARN: "plausible"}
Shown = Mapping[str, Sequence[Check]]
"""The declared checks by the name of the Dagster check that shows them; one severity each."""


def by_severity(name: str, checks: Sequence[Check]) -> dict[str, list[Check]]:
    """``NAME_valid`` and ``NAME_plausible``, where there are checks of that severity."""
    shown: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        shown[f"{name}_{SUFFIXES[check.severity]}"].append(check)
    return dict(shown)


def check_specs(
    shown: Shown,
    asset: dg.AssetKey,
    consequences: Mapping[Severity, str],
    *,
    may_block: bool = True,
) -> list[dg.AssetCheckSpec]:
    """Those over checks of severity ``error`` block, where they may."""
    return [
        collection_check(
            name,
            asset=asset,
            description=f"{consequences[checks[0].severity]} Checks: "
            + ", ".join(check.name for check in checks),
            blocking=may_block and checks[0].severity is Severity.ERROR,
        )
        for name, checks in shown.items()
    ]


def check_results(
    shown: Shown, asset: dg.AssetKey, looked: Sequence[Looked], *, nothing: str
) -> Iterator[dg.AssetCheckResult]:
    """One result a Dagster check. ``nothing`` says why there is none to show."""
    for name, checks in shown.items():
        names = {check.name for check in checks}
        yield _result(
            name, asset, [seen for seen in looked if seen.outcome.check.name in names], nothing
        )


def check_evaluation(result: dg.AssetCheckResult, partition: str) -> dg.AssetCheckEvaluation:
    """The result as an event of an op, for a job that is not made of assets."""
    assert result.asset_key is not None and result.check_name is not None
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=bool(result.passed),
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
        blocking=False,
        partition=partition,
    )


def blocking_names(looked: Sequence[Looked]) -> str:
    """The checks that failed or could not run, each with its reason; empty when none did."""
    return ", ".join(
        f"{seen.outcome.check.name} ({seen.outcome.reason or f'{seen.outcome.failures} rows'})"
        for seen in looked
        if seen.outcome.is_blocking
    )


def require_passed(looked: Sequence[Looked], *, otherwise: str) -> None:
    """Raise `ChecksFailed`, which no step retries; ``otherwise`` says what to do.

    A blocking check that only reports would be retried as if its answer could change.
    """
    if names := blocking_names(looked):
        raise ChecksFailed(f"{looked[0].subject} fails {names}: {otherwise}")


def _result(
    name: str, asset: dg.AssetKey, looked: Sequence[Looked], nothing: str
) -> dg.AssetCheckResult:
    if not looked:
        return dg.AssetCheckResult(
            asset_key=asset, check_name=name, passed=True, description=nothing
        )
    bad = [seen for seen in looked if seen.outcome.status != Status.PASS]
    blocks = any(seen.outcome.is_blocking for seen in bad)
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=not bad,
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        description="; ".join(map(_sentence, bad)) or None,
        metadata={
            "looked_at": sorted({seen.subject for seen in looked}),
            "failing_rows": sum(seen.outcome.failures for seen in looked),
            "failing_ids": [
                {"in": seen.subject, "check": seen.outcome.check.name, **row}
                for seen in bad
                for row in seen.outcome.sample
            ],
            "seconds": round(sum(seen.outcome.seconds for seen in looked), 3),
            "checks": _table(looked),
        },
    )


def _sentence(seen: Looked) -> str:
    return f"{seen.outcome.check.name}: {seen.outcome.reason or f'{seen.outcome.failures} rows'}"


def _table(looked: Sequence[Looked]) -> dg.MarkdownMetadataValue:
    lines = ["| check | what it asks | status | failing rows |", "|---|---|---|---:|"]
    lines += [
        f"| {outcome.check.name} | {outcome.check.description or outcome.check.column or ''} |"
        f" {outcome.status} | {outcome.failures} |"
        for outcome in (seen.outcome for seen in looked)
    ]
    return dg.MetadataValue.md("\n".join(lines))
