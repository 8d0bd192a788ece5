"""The part of a declaration that generic and singular checks share: how much it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dbt_like_checks.check import Engine, Severity, Threshold, Thresholds
from dbt_like_checks.nodes import Node

CONFIG_KEYS: Final = ("description", "severity", "error_if", "warn_if")


@dataclass(frozen=True, slots=True)
class Config:
    severity: Severity
    thresholds: Thresholds
    description: str


def read_config(entries: Mapping[str, Node]) -> Config:
    """Read `CONFIG_KEYS` out of a mapping's entries; every one is optional."""
    severity = _severity(entries.get("severity"))
    if severity is Severity.WARN and "error_if" in entries:
        raise entries["error_if"].error(
            "error_if has no effect with severity: warn; use warn_if, or severity: error"
        )
    thresholds = {
        key: _threshold(entries[key], key) for key in ("error_if", "warn_if") if key in entries
    }
    description = entries.get("description")
    return Config(
        severity,
        Thresholds(**thresholds),
        description.string("description").strip() if description else "",
    )


def read_engine(entries: Mapping[str, Node]) -> Engine:
    """Read ``engine``, which stands once in a file; without it a check runs on Parquet."""
    node = entries.get("engine")
    if node is None:
        return Engine.PARQUET
    text = node.string("engine")
    if text not in set(Engine):
        raise node.error(f"unknown engine {text!r}; valid: {', '.join(Engine)}")
    return Engine(text)


def _severity(node: Node | None) -> Severity:
    if node is None:
        return Severity.ERROR
    text = node.string("severity")
    if text not in set(Severity):
        raise node.error(f"unknown severity {text!r}; valid: {', '.join(Severity)}")
    return Severity(text)


def _threshold(node: Node, key: str) -> Threshold:
    try:
        return Threshold.parse(node.string(key))
    except ValueError as error:
        raise node.error(f"{key}: {error}") from error
