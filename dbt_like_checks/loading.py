"""Checks from files: those a caller names, and those that come with the package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path, PurePath
from typing import Final

from dbt_like_checks.check import Check
from dbt_like_checks.errors import InvalidChecks
from dbt_like_checks.parsing import parse_models
from dbt_like_checks.singular import parse_singular

YAML_SUFFIXES: Final = (".yml", ".yaml")
SUFFIXES: Final = (*YAML_SUFFIXES, ".sql")


def load_checks(paths: Iterable[Path | str]) -> tuple[Check, ...]:
    """The checks of these files, and of all ``.yml``, ``.yaml``, ``.sql`` files below these folders.

    Order: as given, a folder's files by path. Raises `InvalidChecks` for an unreadable or invalid
    file, two checks of one name, or paths that together declare no check.
    """
    roots = [Path(path) for path in paths]
    checks = _checks((str(file), _read(file)) for root in roots for file in _files(root))
    if not checks:
        where = ", ".join(map(str, roots)) or "(no path)"
        raise InvalidChecks("no check is declared here", file=where, line=1)
    return checks


def builtin_checks(name: str) -> tuple[Check, ...]:
    """The checks ``checks/NAME.yml`` and ``checks/NAME/*.sql`` of this package.

    Raises `LookupError` listing the valid names for a name that is not there.
    """
    folder = resources.files("dbt_like_checks") / "checks"
    valid = sorted(entry.name[:-4] for entry in folder.iterdir() if entry.name.endswith(".yml"))
    if name not in valid:
        raise LookupError(f"no built-in checks {name!r}; valid: {', '.join(valid)}")
    entries = [folder / f"{name}.yml"]
    if (singular := folder / name).is_dir():
        entries += sorted(
            (entry for entry in singular.iterdir() if entry.name.endswith(".sql")),
            key=lambda entry: entry.name,
        )
    return _checks((entry.name, entry.read_text(encoding="utf-8")) for entry in entries)


def _checks(files: Iterable[tuple[str, str]]) -> tuple[Check, ...]:
    checks: dict[str, Check] = {}
    for file, text in files:
        for check in _parse(text, file):
            if first := checks.get(check.name):
                raise InvalidChecks(
                    f"check {check.name!r} is already declared in {first.file}:{first.line}; "
                    "give one of them another name",
                    file=check.file,
                    line=check.line,
                )
            checks[check.name] = check
    return tuple(checks.values())


def _parse(text: str, file: str) -> tuple[Check, ...]:
    if file.endswith(YAML_SUFFIXES):
        return parse_models(text, file)
    return (parse_singular(text, PurePath(file).stem, file),)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    elif path.suffix in SUFFIXES:
        yield path
    else:
        raise InvalidChecks(
            f"not a check file; valid: a folder, {', '.join(SUFFIXES)}", file=str(path), line=1
        )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidChecks(f"cannot be read: {error}", file=str(file), line=1) from error
