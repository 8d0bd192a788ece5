"""Check files in YAML: models, their columns, and the generic tests declared on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import yaml

from dbt_like_checks.check import Check
from dbt_like_checks.compiling import BUILDERS, Statement, Target
from dbt_like_checks.config import CONFIG_KEYS, read_config, read_engine
from dbt_like_checks.errors import InvalidChecks
from dbt_like_checks.kinds import KINDS, Level
from dbt_like_checks.nodes import Node, compose

NAME: Final = re.compile(r"[A-Za-z0-9_]+")
DBT_SCHEMA_VERSION: Final = 2


def parse_models(text: str, file: str) -> tuple[Check, ...]:
    """The checks of one YAML file, in its order. ``file`` is what errors call it.

    Raises `InvalidChecks` at the first thing that is not understood.
    """
    root = compose(text, file)
    if root is None:
        raise InvalidChecks("the file is empty; it must list models", file=file, line=1)
    entries = root.mapping("the file", required=("models",), optional=("version", "engine"))
    if "version" in entries and entries["version"].count("version") != DBT_SCHEMA_VERSION:
        raise entries["version"].error(f"unknown version; valid: {DBT_SCHEMA_VERSION}")
    models = entries["models"].sequence("models")
    _refuse_repeated_names(models, "model")
    engine = read_engine(entries)
    return tuple(
        replace(check, engine=engine) for model in models for check in _model_checks(model)
    )


def _model_checks(node: Node) -> Iterator[Check]:
    entries = node.mapping(
        "a model",
        required=("name",),
        optional=("description", "id_columns", "tests", "columns"),
    )
    name = entries["name"].string("the name of a model")
    if "description" in entries:
        entries["description"].string("description")
    ids = entries["id_columns"].strings("id_columns") if "id_columns" in entries else ()
    for test in _sequence(entries, "tests"):
        yield _check(test, Target(name, "", ids))
    columns = _sequence(entries, "columns")
    _refuse_repeated_names(columns, "column")
    for column in columns:
        yield from _column_checks(column, name, ids)


def _column_checks(node: Node, model: str, ids: tuple[str, ...]) -> Iterator[Check]:
    entries = node.mapping("a column", required=("name",), optional=("description", "tests"))
    name = entries["name"].string("the name of a column")
    if "description" in entries:
        entries["description"].string("description")
    for test in _sequence(entries, "tests"):
        yield _check(test, Target(model, name, ids))


def _check(node: Node, target: Target) -> Check:
    kind, arguments = _kind(node, "column" if target.column else "model")
    spec = KINDS[kind]
    optional = (*spec.optional, *CONFIG_KEYS, "name")
    entries = (
        arguments.mapping(kind, required=spec.required, optional=optional) if arguments else {}
    )
    if not arguments and spec.required:
        raise node.error(f"{kind} lacks {', '.join(spec.required)}")
    config = read_config(entries)
    statement = _compile(kind, node, target, entries)
    return Check(
        name=_name(kind, target, entries.get("name")),
        model=target.model,
        column=target.column or None,
        severity=config.severity,
        thresholds=config.thresholds,
        sql=statement.sql,
        parameters=statement.parameters,
        id_columns=statement.id_columns,
        description=config.description,
        file=node.file,
        line=node.line,
    )


def _kind(node: Node, level: Level) -> tuple[str, Node | None]:
    """The kind of a test and its arguments: ``not_null`` or ``unique: {severity: warn}``."""
    arguments: Node | None = None
    if isinstance(node.value, yaml.MappingNode):
        entries = node.entries("a test")
        if len(entries) != 1:
            raise node.error("a test must be one kind, with its arguments indented below it")
        ((kind, arguments),) = entries.items()
        arguments = None if arguments.is_null else arguments
    else:
        kind = node.string("a test")
    valid = sorted(name for name, spec in KINDS.items() if level in spec.levels)
    if kind not in KINDS:
        raise node.error(f"unknown test {kind!r}; valid on a {level}: {', '.join(valid)}")
    if kind not in valid:
        raise node.error(f"{kind} is not a test of a {level}; valid: {', '.join(valid)}")
    return kind, arguments


def _compile(kind: str, node: Node, target: Target, entries: dict[str, Node]) -> Statement:
    spec = KINDS[kind]
    arguments = {
        name: read(entries[name], name)
        for name, read in (*spec.required.items(), *spec.optional.items())
        if name in entries
    }
    try:
        return BUILDERS[kind](target, **arguments)
    except ValueError as error:
        raise node.error(str(error)) from error


def _name(kind: str, target: Target, given: Node | None) -> str:
    if given is None:
        parts = (kind, target.model, target.column)
        return re.sub(r"[^A-Za-z0-9_]", "_", "_".join(part for part in parts if part))
    name = given.string("the name of a check")
    if not NAME.fullmatch(name):
        raise given.error(f"the name of a check may hold letters, digits and _ only, not {name!r}")
    return name


def _sequence(entries: dict[str, Node], key: str) -> list[Node]:
    return entries[key].sequence(key) if key in entries else []


def _refuse_repeated_names(nodes: Iterable[Node], what: str) -> None:
    lines: dict[str, int] = {}
    for node in nodes:
        entry = node.entries(f"a {what}").get("name")
        name = entry.string(f"the name of a {what}") if entry else ""
        if entry and name in lines:
            raise entry.error(f"{what} {name!r} is declared twice, first in line {lines[name]}")
        lines[name] = entry.line if entry else node.line
