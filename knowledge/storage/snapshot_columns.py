"""What the columns of a snapshot must hold, beyond their types, so that every store takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from knowledge.errors import InvalidInput, InvalidSnapshot
from knowledge.model.scope import parse_acl

_PLACE: Final = ("source_id", "path", "anchor")
_UNIT: Final = "\x1f"
"""Joins the parts of a chunk's place into its id: a place that holds it could be another's."""


def require_storable(path: Path) -> None:
    """Check the strings, ACLs and metadata of one Parquet file. Raises `InvalidSnapshot`."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            for name in group.column_names:
                _require_strings(path, name, group.column(name))
            _require_acls(path, group.column("acl"))
            _require_metadata(path, group.column("metadata"))


def _require_strings(path: Path, name: str, column: Any) -> None:
    if pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    if not pa.types.is_string(column.type):
        return
    for unfit in ("\0", _UNIT) if name in _PLACE else ("\0",):
        if pc.any(pc.match_substring(column, unfit)).as_py():
            raise InvalidSnapshot(f"{path}: column {name} holds the character {unfit!a}")


def _require_acls(path: Path, column: Any) -> None:
    """A malformed entry must not pass for one that an index gives a meaning to."""
    for entries in {None if acl is None else tuple(acl) for acl in column.to_pylist()}:
        try:
            parse_acl(entries)
        except InvalidInput as error:
            raise InvalidSnapshot(f"{path}: {error.message}") from error


def _require_metadata(path: Path, column: Any) -> None:
    for value in pc.unique(column).to_pylist():
        try:
            parsed = json.loads(value or "{}")
            json.dumps(parsed, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise InvalidSnapshot(f"{path}: metadata is not JSON: {str(error)[:80]}") from error
        if not isinstance(parsed, dict) or "\\u0000" in value.replace("\\\\", ""):
            raise InvalidSnapshot(f"{path}: metadata must be an object without NUL characters")
