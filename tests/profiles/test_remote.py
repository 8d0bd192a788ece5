from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from knowledge.errors import InvalidConfiguration, ModelUnavailable, ProfileMismatch
from knowledge.profiles.remote import LiteLLMEmbedder, Retry
from knowledge.settings import ProfileSettings
from tests.profiles.embedding_service import (
    Answer,
    Service,
    answer_with,
    failing,
    good,
    hanging,
    running_service,
    vector,
)

KEY = "sk-not-to-be-seen"
TEXT = "a text that is nobody's business"
QUICK = Retry(attempts=3, timeout_s=10, first_delay_s=0.001, max_delay_s=0.01)

Connect = Callable[..., LiteLLMEmbedder]


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as running:
        yield running


@pytest.fixture
def connect(service: Service) -> Connect:
    def connect(retry: Retry = QUICK, **settings: object) -> LiteLLMEmbedder:
        definition = {
            "provider": "litellm",
            "model": "openai/tiny",
            "api_base": service.url,
            "api_key_env": "TINY_KEY",
            **settings,
        }
        return LiteLLMEmbedder(
            "tiny@1",
            ProfileSettings.model_validate(definition),
            retry=retry,
            environ={"TINY_KEY": KEY},
        )

    return connect


def unit(text: str) -> NDArray[np.float64]:
    values = np.array(vector(text))
    direction: NDArray[np.float64] = values / np.linalg.norm(values)
    return direction


def test_vectors_are_normalised_and_in_order_across_batches(
    service: Service, connect: Connect
) -> None:
    embedder = connect(batch_size=2)
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    answer = embedder.embed(texts)
    np.testing.assert_allclose(answer.vectors, [unit(text) for text in texts], atol=1e-6)
    assert answer.vectors.dtype == np.float32 and answer.vectors.flags.c_contiguous
    assert [len(request["input"]) for request in service.requests[1:]] == [2, 2, 1]
    assert (answer.tokens, answer.cost) == (50, None)
    assert set(service.keys) == {f"Bearer {KEY}"}


def test_the_profile_is_remote_and_its_dimension_probed(connect: Connect) -> None:
    profile = connect().profile
    assert (profile.key, profile.dimension, profile.is_local) == ("tiny@1", 3, False)


def test_prefixes_are_sent_and_an_empty_text_is_a_space(service: Service, connect: Connect) -> None:
    connect(query_prefix="q: ", passage_prefix="p: ").embed_query("x")
    assert service.requests[-1]["input"] == ["q: x"]
    connect().embed(["", "y"])
    assert service.requests[-1]["input"] == [" ", "y"]


def test_a_configured_price_gives_the_cost(connect: Connect) -> None:
    answer = connect(cost_per_million_tokens=2.0).embed(["a", "b"])
    assert answer.cost == pytest.approx(20 * 2.0 / 1e6)


def test_no_texts_ask_nothing(service: Service, connect: Connect) -> None:
    assert connect().embed([]).vectors.shape == (0, 3)
    assert len(service.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(service: Service, connect: Connect, status: int) -> None:
    embedder = connect()
    service.script = [failing(status), failing(status), good]
    np.testing.assert_allclose(embedder.embed_query(TEXT), unit(TEXT), atol=1e-6)
    assert len(service.requests) == 4


def test_tries_are_bounded(service: Service, connect: Connect) -> None:
    embedder = connect()
    service.script = [failing(500)] * 9
    with pytest.raises(ModelUnavailable, match=r"status 500 \(attempt 3\)"):
        embedder.embed_query(TEXT)
    assert len(service.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_tried_again(service: Service, connect: Connect, status: int) -> None:
    embedder = connect()
    service.script = [failing(status)]
    with pytest.raises(ModelUnavailable, match=f"status {status}"):
        embedder.embed_query(TEXT)
    assert len(service.requests) == 2


def test_a_service_that_hangs_is_given_up(service: Service, connect: Connect) -> None:
    embedder = connect(Retry(attempts=2, timeout_s=0.3, first_delay_s=0.001))
    service.script = [hanging, hanging]
    with pytest.raises(ModelUnavailable, match="Timeout"):
        embedder.embed_query(TEXT)
    assert len(service.requests) == 3


def test_a_service_that_is_gone_is_unavailable(connect: Connect) -> None:
    with pytest.raises(ModelUnavailable, match="check its address"):
        connect(api_base="http://127.0.0.1:9/v1")


def test_another_dimension_is_a_mismatch(service: Service, connect: Connect) -> None:
    embedder = connect()
    service.script = [lambda service, texts: answer_with([[1.0, 2.0]])]
    with pytest.raises(ProfileMismatch, match=r"answers in \[2\] dimensions, not 3"):
        embedder.embed_query(TEXT)


def _too_few(service: Service, texts: list[str]) -> tuple[int, bytes]:
    return answer_with([vector(text) for text in texts[1:]])


def _garbage(service: Service, texts: list[str]) -> tuple[int, bytes]:
    return 200, b"<html>not json"


def _other_json(service: Service, texts: list[str]) -> tuple[int, bytes]:
    return (
        200,
        b'{"data": [{"index": 0, "embedding": "soon"}], "object": "list", "model": "x"}',
    )


def _not_a_number(service: Service, texts: list[str]) -> tuple[int, bytes]:
    return answer_with([[float("nan"), 1.0, 1.0] for _ in texts])


# The client library warns about an answer of the wrong type before we refuse it.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("answer", [_too_few, _garbage, _other_json, _not_a_number])
def test_a_broken_answer_is_never_taken(service: Service, connect: Connect, answer: Answer) -> None:
    embedder = connect()
    service.script = [answer] * 9
    with pytest.raises(ModelUnavailable):
        embedder.embed([TEXT, "another"])


@pytest.mark.parametrize("status", [401, 500])
def test_neither_texts_nor_keys_are_logged_or_told(
    service: Service, connect: Connect, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    embedder = connect()
    service.script = [failing(status)] * 3
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(ModelUnavailable) as caught,
    ):
        embedder.embed_query(TEXT)
    shown = caplog.text + str(caught.value) + repr(caught.value.facts)
    assert TEXT not in shown and KEY not in shown
    assert caught.value.__suppress_context__


def test_a_key_that_is_not_set_names_its_variable() -> None:
    settings = ProfileSettings(provider="litellm", model="openai/tiny", api_key_env="TINY_KEY")
    with pytest.raises(InvalidConfiguration, match="set the variable TINY_KEY"):
        LiteLLMEmbedder("tiny@1", settings, environ={})


def test_a_missing_package_names_the_command_that_installs_it(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'knowledge-retrieval\[remote\]'"):
        connect()


def test_the_package_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, knowledge.profiles.registry; sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
