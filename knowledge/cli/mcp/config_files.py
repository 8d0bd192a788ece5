"""An entry put into a program's configuration file, with everything else in it left as it is."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from knowledge.errors import InvalidConfiguration

NEW_FILE_MODE: Final = 0o600

Entry = dict[str, Any]


def written(path: Path, section: str, name: str, entry: Entry) -> str:
    """The text of the file alone with this entry, as it would be new."""
    if path.suffix == ".toml":
        return _toml_table(section, name, entry)
    return json.dumps({section: {name: entry}}, indent=2) + "\n"


def merge(path: Path, section: str, name: str, entry: Entry) -> Path | None:
    """Put the entry into the file, in the place of one of the same name.

    Returns the backup of what was there; None where the file is new or needs no change. Raises
    `InvalidConfiguration` for a file that could not be changed without losing something.
    """
    target = path.resolve()
    before = target.read_text() if target.exists() else ""
    change = _merged_toml if path.suffix == ".toml" else _merged_json
    after = change(path, before, section, name, entry)
    if after == before:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = _back_up(target) if before else None
    _replace(target, after)
    return backup


def _merged_json(path: Path, before: str, section: str, name: str, entry: Entry) -> str:
    try:
        held = json.loads(before) if before.strip() else {}
    except ValueError as error:
        raise _by_hand(path, "is not plain JSON (comments?)") from error
    if not isinstance(held, dict) or not isinstance(held.get(section, {}), dict):
        raise _by_hand(path, f"has no object {section}")
    if held.get(section, {}).get(name) == entry:
        return before
    held[section] = {**held.get(section, {}), name: entry}
    return json.dumps(held, indent=2, ensure_ascii=False) + "\n"


def _merged_toml(path: Path, before: str, section: str, name: str, entry: Entry) -> str:
    """Text is changed, not rewritten, so that comments stay; what it then says is compared."""
    try:
        held = tomllib.loads(before)
    except tomllib.TOMLDecodeError as error:
        raise _by_hand(path, "is not valid TOML") from error
    servers = held.get(section, {})
    if isinstance(servers, dict) and servers.get(name) == entry:
        return before
    kept = _without_table(before, f"{section}.{name}").rstrip("\n")
    after = f"{kept}\n\n" * bool(kept) + _toml_table(section, name, entry)
    expected = {**held, section: {**servers, name: entry}} if isinstance(servers, dict) else None
    try:
        is_right = tomllib.loads(after) == expected
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise _by_hand(path, f"writes {section} in a way that cannot be added to")
    return after


def _without_table(text: str, table: str) -> str:
    """The text without the table of this name and those below it."""
    kept, is_inside = [], False
    for line in text.splitlines():
        header = line.split("#", maxsplit=1)[0].strip()
        if header.startswith("["):
            named = header.strip("[]").replace('"', "").replace(" ", "")
            is_inside = named == table or named.startswith(f"{table}.")
        if not is_inside:
            kept.append(line)
    return "\n".join(kept)


def _toml_table(section: str, name: str, entry: Entry) -> str:
    """Strings and lists of strings are written in TOML as in JSON."""
    lines = [f"[{section}.{name}]"]
    for key, value in entry.items():
        if isinstance(value, dict):
            pairs = ", ".join(f"{inner} = {json.dumps(text)}" for inner, text in value.items())
            lines.append(f"{key} = {{ {pairs} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _back_up(target: Path) -> Path:
    """A copy beside the file, under the first name that is free."""
    number = 0
    while True:
        backup = target.with_name(f"{target.name}.backup{number or ''}")
        if not backup.exists():
            shutil.copy2(target, backup)
            return backup
        number += 1


def _replace(target: Path, text: str) -> None:
    """Write aside and rename, with the mode that the file had."""
    mode = target.stat().st_mode & 0o777 if target.exists() else NEW_FILE_MODE
    descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(aside).chmod(mode)
        Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _by_hand(path: Path, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        f"{path} {why}: nothing was changed; add by hand what the command prints without --write"
    )
