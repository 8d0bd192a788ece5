"""What an operator sees of a step: counts, revisions, and samples that never show text."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from knowledge.storage.postgres.samples import sample_versions
from orchestration.defs.steps import CollectionStep

Metadata = dict[str, Any]


def without_nothing(values: Mapping[str, Any]) -> Metadata:
    """Metadata without the entries that are not known; seconds to the millisecond."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in values.items()
        if value is not None
    }


def sample_table(step: CollectionStep, revision: int) -> dg.MarkdownMetadataValue | None:
    """A few of the chunks that are visible in the revision, newest first."""
    rows = sample_versions(step.runtime.app, step.collection, revision)
    if not rows:
        return None
    lines = ["| chunk | path | kind | characters | since revision |", "|---|---|---|---:|---:|"]
    lines += [
        f"| `{row['chunk_id']}` | {_cell(row['path'])} | {row['kind']} | {row['characters']} |"
        f" {row['from_rev']} |"
        for row in rows
    ]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(text: str) -> str:
    """A path as inline code of a Markdown table: no character of it is markup."""
    return "`" + text.replace("|", "¦").replace("`", "'")[:120] + "`"
