"""The command that runs the job without a daemon."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from knowledge.home import Home
from knowledge.runtime import Runtime
from knowledge.storage.postgres import inbox
from orchestration.run import main
from tests.orchestration.conftest import Publish


def test_the_command_serves_what_is_pending_and_says_nothing(
    home: Home,
    runtime: Runtime,
    create_collection: Publish,
    publish_texts: Callable[..., int],
) -> None:
    collection = create_collection("docs")
    sequence = publish_texts(collection)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "orchestration.run"),
            *("--home", str(home.root), "--partition", collection.partition),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "KNOWLEDGE_HOME": "/nowhere"},
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert inbox.event_state(runtime.app, collection.tenant_id, sequence)["state"] == "served"


def test_an_unknown_collection_is_one_clear_line(
    home: Home, tenant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(home.root), "--partition", f"{tenant}.nothing"]) == 1
    assert capsys.readouterr().err == "knowledge: there is no collection nothing\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_that_takes_too_long_is_stopped_and_its_work_stays_pending(
    home: Home,
    runtime: Runtime,
    instance: object,
    create_collection: Publish,
    publish_texts: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    collection = create_collection("docs")
    sequence = publish_texts(collection)

    code = main(["--home", str(home.root), "--partition", collection.partition, "--timeout", "0.3"])

    assert code == 1
    assert "not finished within 0.3 s" in capsys.readouterr().err
    assert inbox.event_state(runtime.app, collection.tenant_id, sequence)["state"] != "served"
