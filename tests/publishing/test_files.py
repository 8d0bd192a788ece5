"""Which files a publish covers, and what it says about the rest."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from knowledge.errors import InvalidInput, NothingToPublish
from knowledge.publishing.files import FileSet, collect
from knowledge.publishing.versions import source_version
from knowledge.settings import PublishingSettings

SETTINGS = PublishingSettings(max_file_bytes=1000)


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def found(*paths: Path, root: Path | None = None) -> list[str]:
    return [file.path for file in collect(paths, root=root, settings=SETTINGS).files]


def git(root: Path, *arguments: str) -> str:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """A working tree with one commit of a.txt and sub/b.txt."""
    root = write(tmp_path / "tree", {"a.txt": "a", "sub/b.txt": "b"})
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


# --- paths -----------------------------------------------------------------------------


def test_paths_are_relative_to_the_one_folder_in_order(tmp_path: Path) -> None:
    write(tmp_path, {"b.txt": "x", "a/z.txt": "x", "a/b/c.txt": "x", "B.txt": "x"})
    assert found(tmp_path) == ["B.txt", "a/b/c.txt", "a/z.txt", "b.txt"]


def test_one_file_has_its_name_as_path(tmp_path: Path) -> None:
    write(tmp_path, {"a/z.txt": "x"})
    assert found(tmp_path / "a/z.txt") == ["z.txt"]


def test_several_paths_are_relative_to_their_common_parent_and_never_doubled(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"p/a/1.txt": "x", "p/b/2.txt": "x", "p/b/3.txt": "x"})
    listed = found(tmp_path / "p/a", tmp_path / "p/b", tmp_path / "p/b/3.txt")
    assert listed == ["a/1.txt", "b/2.txt", "b/3.txt"]


def test_a_given_root_overrides_and_a_path_outside_it_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"p/a/1.txt": "x", "q/2.txt": "x"})
    assert found(tmp_path / "p/a", root=tmp_path) == ["p/a/1.txt"]
    with pytest.raises(InvalidInput, match="outside the root"):
        found(tmp_path / "q", root=tmp_path / "p")


def test_a_missing_path_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere does not exist") as caught:
        found(tmp_path / "nowhere")
    assert "\n" not in caught.value.message


# --- what is skipped -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.dat", b"text\0more", "binary"),
        ("a.png", b"\x89PNG", "binary"),
        ("a.txt", "café".encode("latin-1"), "not UTF-8"),
        ("a.txt", "text".encode("utf-16"), "not UTF-8"),
        ("a.txt", b"x" * 1001, "too large"),
        ("a.txt", b"", "empty"),
        ("a.txt", b"\xef\xbb\xbf \n\t\r\n", "empty"),
        ("a\nb.txt", b"x", "name with control characters or not UTF-8"),
        (os.fsdecode(b"a\xff.txt"), b"x", "name with control characters or not UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_skipped_and_counted(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    write(tmp_path, {"good.txt": "x", name: content})
    files = collect([tmp_path], root=None, settings=SETTINGS)
    assert [file.path for file in files.files] == ["good.txt"]
    assert files.skipped == {reason: 1}
    (example,) = files.skipped_examples[reason]
    assert example.startswith("a") and example.isprintable()


def test_a_file_of_exactly_the_limit_is_published(tmp_path: Path) -> None:
    assert found(write(tmp_path, {"a.txt": "x" * 1000})) == ["a.txt"]


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(write(tmp_path, {"a.txt": "x"}) / "pipe")
    files = collect([tmp_path], root=None, settings=SETTINGS)
    assert files.skipped == {"not a regular file": 1}


def test_nothing_usable_says_what_was_skipped_and_why(tmp_path: Path) -> None:
    write(tmp_path, {f"{n}.png": b"\0" for n in range(5)} | {"e.txt": ""})
    with pytest.raises(NothingToPublish) as caught:
        found(tmp_path)
    assert "5 binary (0.png, 1.png, 2.png, …), 1 empty (e.txt)" in caught.value.message


def test_an_empty_folder_is_nothing_to_publish(tmp_path: Path) -> None:
    with pytest.raises(NothingToPublish, match="nothing to publish in"):
        found(tmp_path)


# --- text ------------------------------------------------------------------------------


def test_text_has_no_mark_and_plain_line_ends(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": b"\xef\xbb\xbfone\r\ntwo\x0cx\n\ttwo\x1b[0m"})
    (file,) = collect([tmp_path], root=None, settings=SETTINGS).files
    assert file.read_text() == "one\ntwo x\n\ttwo [0m"


def test_a_file_that_changed_since_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "one"})
    (file,) = collect([tmp_path], root=None, settings=SETTINGS).files
    write(tmp_path, {"a.txt": "two"})
    with pytest.raises(InvalidInput, match="changed while"):
        file.read_text()


# --- links -----------------------------------------------------------------------------


def test_links_out_of_the_root_and_loops_are_counted_and_never_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "root", {"a/x.txt": "x"})
    write(tmp_path, {"secret.txt": "s", "out/s.txt": "s"})
    (root / "secret.txt").symlink_to(tmp_path / "secret.txt")
    (root / "out").symlink_to(tmp_path / "out")
    (root / "a/loop").symlink_to(root)
    (root / "broken").symlink_to(root / "nowhere")
    files = collect([root], root=None, settings=SETTINGS)
    assert [file.path for file in files.files] == ["a/x.txt"]
    assert sum(files.skipped.values()) == 4


def test_a_link_to_a_file_within_the_root_is_read_but_not_into_a_closed_folder(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"docs/x.txt": "x", ".git/config": "secret"})
    (tmp_path / "README.txt").symlink_to(tmp_path / "docs/x.txt")
    (tmp_path / "config.txt").symlink_to(tmp_path / ".git/config")
    assert found(tmp_path) == ["README.txt", "docs/x.txt"]


# --- ignore files, with git and without --------------------------------------------------

TREE: dict[str, str | bytes] = {
    ".gitignore": "*.log\n!keep.log\n/build/\n[z-a]\n",
    ".knowledgeignore": "drafts/\n*.tmp.txt\n",
    "a.txt": "x",
    "a.log": "x",
    "keep.log": "x",
    "build/out.txt": "x",
    "sub/build/in.txt": "x",
    "sub/.gitignore": "*.csv\n!special.log\n",
    "sub/special.log": "x",
    "sub/data.csv": "x",
    "data.csv": "x",
    "drafts/d.txt": "x",
    "sub/drafts/d.txt": "x",
    "sub/.knowledgeignore": "!wanted.tmp.txt\n",
    "sub/wanted.tmp.txt": "x",
    "other.tmp.txt": "x",
    "node_modules/m.txt": "x",
    "sub/__pycache__/m.txt": "x",
    ".venv/m.txt": "x",
    ".knowledge/m.txt": "x",
}
KEPT = ["a.txt", "data.csv", "keep.log", "sub/build/in.txt", "sub/special.log"]


def as_folder(root: Path) -> None:
    """A folder without git."""


def as_working_tree(root: Path) -> None:
    git(root, "init", "-q")


@pytest.mark.parametrize("prepare", [as_folder, as_working_tree])
def test_ignore_files_count_at_every_level(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    prepare(write(tmp_path, TREE))
    listed = [path for path in found(tmp_path) if "ignore" not in path]
    assert listed == [*KEPT, "sub/wanted.tmp.txt"]


@pytest.mark.parametrize("prepare", [as_folder, as_working_tree])
def test_a_folder_that_is_named_is_published_although_an_outer_rule_excludes_it(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(write(tmp_path, TREE))
    assert found(tmp_path / "build") == ["out.txt"]
    assert found(tmp_path / "drafts") == ["d.txt"]


def test_rules_above_a_named_folder_of_a_working_tree_count(tmp_path: Path) -> None:
    as_working_tree(write(tmp_path, TREE | {"sub/a.log": "x"}))
    assert "a.log" not in found(tmp_path / "sub")
    assert "drafts/d.txt" not in found(tmp_path / "sub")


def test_git_excludes_outside_the_tree_count(committed: Path) -> None:
    write(committed, {".git/info/exclude": "local.txt\n", "local.txt": "x", "new.txt": "x"})
    assert found(committed) == ["a.txt", "new.txt", "sub/b.txt"]


def test_a_repository_inside_a_folder_follows_its_own_rules_and_the_outer_ones(
    tmp_path: Path,
) -> None:
    write(tmp_path, {".knowledgeignore": "no.txt\n", "r/no.txt": "x", "r/yes.txt": "x"})
    git(tmp_path / "r", "init", "-q")
    write(tmp_path / "r", {".git/info/exclude": "local.txt\n", "local.txt": "x"})
    assert found(tmp_path) == [".knowledgeignore", "r/yes.txt"]
    git(tmp_path, "init", "-q")
    assert found(tmp_path) == [".knowledgeignore", "r/yes.txt"]


def test_a_tracked_file_that_was_deleted_is_not_an_error(committed: Path) -> None:
    (committed / "a.txt").unlink()
    assert found(committed) == ["sub/b.txt"]


def test_a_repository_cannot_name_a_program_to_run(committed: Path, tmp_path: Path) -> None:
    program = tmp_path / "monitor"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    git(committed, "config", "core.fsmonitor", str(program))
    version(collect([committed], root=None, settings=SETTINGS))
    assert not (tmp_path / "ran").exists()


# --- versions --------------------------------------------------------------------------


def version(files: FileSet) -> str:
    return source_version(files.root, files.digests)


def version_of(path: Path) -> str:
    return version(collect([path], root=None, settings=SETTINGS))


def test_the_version_of_a_clean_tree_is_its_commit(committed: Path) -> None:
    commit = git(committed, "rev-parse", "HEAD")
    assert version_of(committed) == commit
    assert version_of(committed / "sub") == commit
    assert version_of(committed / "a.txt") == commit


@pytest.mark.parametrize("change", ["edited", "untracked", "deleted"])
def test_the_version_of_a_changed_tree_adds_the_content(committed: Path, change: str) -> None:
    commit = git(committed, "rev-parse", "HEAD")
    if change == "edited":
        write(committed, {"a.txt": "changed"})
    elif change == "untracked":
        write(committed, {"new.txt": "x"})
    else:
        (committed / "a.txt").unlink()
    dirty = version_of(committed)
    assert dirty.startswith(f"{commit}+") and len(dirty) == len(commit) + 9
    assert version_of(committed / "sub") == commit, "what is not published does not count"
    write(committed, {"new2.txt": "y"})
    assert version_of(committed) != dirty


def test_the_version_of_a_folder_is_its_content(tmp_path: Path) -> None:
    one = write(tmp_path / "one", {"a.txt": "x", "b.txt": "y"})
    two = write(tmp_path / "two", {"b.txt": "y", "a.txt": "x"})
    assert version_of(one) == version_of(two)
    assert version_of(one).startswith("sha256:") and len(version_of(one)) == 23
    (two / "b.txt").rename(two / "c.txt")
    assert version_of(one) != version_of(two)


def test_a_tree_without_a_commit_and_an_ignored_folder_have_their_content_as_version(
    committed: Path, tmp_path: Path
) -> None:
    fresh = write(tmp_path / "fresh", {"a.txt": "x"})
    git(fresh, "init", "-q")
    assert version_of(fresh).startswith("sha256:")
    write(committed, {".gitignore": "data/\n", "data/d.txt": "x"})
    assert version_of(committed / "data").startswith("sha256:")


def test_without_git_the_version_is_the_content(
    committed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    write(committed, {".gitignore": "*.log\n", "a.log": "x"})
    assert found(committed) == [".gitignore", "a.txt", "sub/b.txt"]
    assert version_of(committed).startswith("sha256:")


def test_git_variables_of_the_caller_do_not_mislead(
    committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert len(version_of(committed)) == 40
