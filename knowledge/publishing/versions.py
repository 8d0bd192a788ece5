"""Which version of its source a publish carries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from knowledge.publishing.git import nul_separated, run_git


def source_version(root: Path, digests: Mapping[str, bytes]) -> str:
    """The version of the files ``digests`` (path relative to ``root``, to SHA-256).

    In a git working tree the full commit hash; ``COMMIT+XXXXXXXX`` (8 hex digits of the
    content's hash) when a published file differs from the commit, is not part of it, or one
    of the commit's files below ``root`` was deleted. Without git, a commit, or any tracked
    file among them ``sha256:`` and 16 hex digits of the content's hash. The order of
    ``digests`` does not matter.
    """
    content = _content_hash(digests)
    commit = run_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    tracked = set(nul_separated(run_git(root, "ls-files", "-z", "--recurse-submodules")))
    if commit is None or tracked.isdisjoint(digests):
        return f"sha256:{content[:16]}"
    version = commit.decode().strip()
    if tracked.issuperset(digests) and not _is_changed(root, digests):
        return version
    return f"{version}+{content[:8]}"


def _is_changed(root: Path, digests: Mapping[str, bytes]) -> bool:
    """Whether a published file differs from the commit, or one of the commit is gone."""
    output = run_git(
        root, "diff", "--no-ext-diff", "--no-renames", "--relative", "--name-only", "-z", "HEAD"
    )
    if output is None:
        return True
    for changed in nul_separated(output):
        inside = f"{changed}/"  # a submodule is named by its folder
        if changed in digests or any(path.startswith(inside) for path in digests):
            return True
        if not (root / changed).exists():
            return True
    return False


def _content_hash(digests: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for path in sorted(digests):
        name = path.encode("utf-8", "surrogatepass")
        total.update(len(name).to_bytes(8, "big") + name + digests[path])
    return total.hexdigest()
