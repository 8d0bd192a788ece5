"""The YAML block at the head of a Markdown file, as metadata."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

import yaml

from knowledge.publishing.cleaning import clean_line, clean_text, parse_time

_MAX_LINES: Final = 200
_MAX_CHARS: Final = 16_384
_MAX_DEPTH: Final = 8
_MAX_TAG_CHARS: Final = 100
_TIME_KEYS: Final = ("updatedAt", "updated", "lastmod", "date")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands before the text. ``line_count`` is 0 when the file has no front matter."""

    line_count: int = 0
    title: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    updated_at: datetime | None = None


def read_front_matter(lines: Sequence[str]) -> FrontMatter:
    """The front matter of a file's lines; one that is no YAML mapping is text, not metadata."""
    if not lines or lines[0].rstrip() != "---":
        return FrontMatter()
    close = next(
        (n for n in range(1, min(len(lines), _MAX_LINES)) if lines[n].rstrip() in ("---", "...")),
        None,
    )
    values = None if close is None else _load("\n".join(lines[1:close]))
    if close is None or values is None:
        return FrontMatter()
    title, tags = values.pop("title", ""), values.pop("tags", None)
    return FrontMatter(
        line_count=close + 1,
        title=clean_line(title) if isinstance(title, str) else "",
        tags=_tags(tags),
        metadata=values,
        updated_at=next(filter(None, (parse_time(values.get(key)) for key in _TIME_KEYS)), None),
    )


class _WithoutAliases(yaml.SafeLoader):
    """Refuses aliases: a few lines of them expand to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)


def _load(text: str) -> dict[str, Any] | None:
    if len(text) > _MAX_CHARS:
        return None
    try:
        values = yaml.load(text, Loader=_WithoutAliases)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    return {clean_line(str(key)): _json_value(value, 0) for key, value in values.items()}


def _json_value(value: object, depth: int) -> Any:
    """A YAML value as JSON holds it: dates as ISO 8601, what JSON lacks as text."""
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        return {clean_text(str(key)): _json_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set) and depth < _MAX_DEPTH:
        return [_json_value(item, depth + 1) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    return clean_text(str(value))


def _tags(value: object) -> tuple[str, ...]:
    """Tags from a YAML list or a comma-separated line."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        return ()
    tags = (clean_line(str(item)) for item in items if isinstance(item, str | int | float))
    return tuple(dict.fromkeys(tag for tag in tags if 0 < len(tag) <= _MAX_TAG_CHARS))
