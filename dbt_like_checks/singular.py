"""Singular checks: a ``.sql`` file that SELECTs failing rows, configured in its top comment."""

from __future__ import annotations

from typing import Final

from dbt_like_checks.check import Check
from dbt_like_checks.config import CONFIG_KEYS, read_config, read_engine
from dbt_like_checks.errors import InvalidChecks
from dbt_like_checks.nodes import Node, compose
from dbt_like_checks.parsing import NAME

_KEYS: Final = (*CONFIG_KEYS, "engine", "model", "column", "id_columns")


def parse_singular(text: str, name: str, file: str) -> Check:
    """The check of one ``.sql`` file. ``name`` is the file's name without its extension.

    The comment lines at the very top are YAML; other comments go below the first line of SQL.
    Raises `InvalidChecks`.
    """
    if not NAME.fullmatch(name):
        raise InvalidChecks(
            f"a check is named after its file, in letters, digits and _ only, not {name!r}",
            file=file,
            line=1,
        )
    lines = text.splitlines()
    header_length = next(
        (number for number, line in enumerate(lines) if not line.startswith("--")), len(lines)
    )
    entries = _header(lines[:header_length], file)
    sql = "\n".join(lines[header_length:]).strip().rstrip(";").rstrip()
    if not sql:
        raise InvalidChecks("the file holds no SELECT", file=file, line=header_length + 1)
    config = read_config(entries)
    return Check(
        name=name,
        model=entries["model"].string("model") if "model" in entries else None,
        column=entries["column"].string("column") if "column" in entries else None,
        severity=config.severity,
        thresholds=config.thresholds,
        sql=sql,
        parameters=(),
        id_columns=entries["id_columns"].strings("id_columns") if "id_columns" in entries else (),
        description=config.description,
        file=file,
        line=1,
        engine=read_engine(entries),
    )


def _header(comment: list[str], file: str) -> dict[str, Node]:
    # One YAML line a comment line, so that the lines of errors are those of the file.
    document = "\n".join(line.removeprefix("--").removeprefix(" ") for line in comment)
    root = compose(document, file)
    what = "the comment at the top (other comments go below the first line of SQL)"
    return root.mapping(what, optional=_KEYS) if root else {}
