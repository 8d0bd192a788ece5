"""Folders of all supported shapes, with graphs so small that the answer is known by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from knowledge.errors import ModelUnavailable
from knowledge.profiles.onnx import OnnxEmbedder
from knowledge.settings import ProfileSettings

STATES = np.array([[9, 9], [1, 0], [0, 1], [0, 0], [1, 1]], dtype=np.float32)
"""Token states of [PAD], east, north, nowhere and any other word."""
DIAGONAL = np.sqrt(0.5)


def write_folder(
    folder: Path,
    *,
    name: str = "model.onnx",
    output: str = "last_hidden_state",
    pooled: bool = False,
) -> Path:
    tokenizer = Tokenizer(
        WordLevel({"[PAD]": 0, "east": 1, "north": 2, "nowhere": 3, "?": 4}, unk_token="?")
    )
    tokenizer.pre_tokenizer = Whitespace()
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    lookup = "states" if pooled else output
    constants = [numpy_helper.from_array(STATES, "table")]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], [lookup])]
    if pooled:
        constants.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "axis"))
        nodes.append(helper.make_node("ReduceSum", [lookup, "axis"], [output], keepdims=0))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "t"])],
        [
            helper.make_tensor_value_info(
                output, TensorProto.FLOAT, ["n", 2] if pooled else ["n", "t", 2]
            )
        ],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / name).parent.mkdir(exist_ok=True)
    onnx.save(model, folder / name)
    return folder


def load(folder: Path, **settings: object) -> OnnxEmbedder:
    definition = {"provider": "onnx", "folder": str(folder), **settings}
    return OnnxEmbedder("tiny@1", ProfileSettings.model_validate(definition), folder)


@pytest.mark.parametrize("name", ["model.onnx", "model_quantized.onnx", "onnx/model.onnx"])
def test_the_graph_is_found_under_each_usual_name(tmp_path: Path, name: str) -> None:
    embedder = load(write_folder(tmp_path / "tiny", name=name))
    np.testing.assert_allclose(embedder.embed_query("north"), [0, 1])
    assert (embedder.profile.model, embedder.profile.dimension) == ("tiny", 2)


def test_token_states_are_averaged_without_the_padding(tmp_path: Path) -> None:
    embedder = load(write_folder(tmp_path))
    vectors = embedder.embed(["east", "east north north east", "north"]).vectors
    np.testing.assert_allclose(vectors, [[1, 0], [DIAGONAL, DIAGONAL], [0, 1]], atol=1e-6)


def test_the_first_token_is_taken_where_the_folder_says_so(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_cls_token": True})
    )
    np.testing.assert_allclose(load(tmp_path).embed(["north east east"]).vectors, [[0, 1]])


@pytest.mark.parametrize("output", ["embedding", "sentence_embedding"])
def test_a_pooled_output_is_taken_and_normalised(tmp_path: Path, output: str) -> None:
    embedder = load(write_folder(tmp_path, output=output, pooled=True))
    np.testing.assert_allclose(embedder.embed_query("east north"), [DIAGONAL, DIAGONAL], atol=1e-6)


def test_order_survives_sorting_into_batches(tmp_path: Path) -> None:
    embedder = load(write_folder(tmp_path), batch_size=2)
    texts = ["east east east", "north", "east east", "north north north north", "east"]
    vectors = embedder.embed(texts).vectors
    np.testing.assert_allclose(vectors, [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]])


def test_prefixes_go_before_queries_and_passages(tmp_path: Path) -> None:
    embedder = load(write_folder(tmp_path), query_prefix="east ", passage_prefix="north ")
    np.testing.assert_allclose(embedder.embed_query("east"), [1, 0])
    np.testing.assert_allclose(embedder.embed(["north"]).vectors, [[0, 1]])
    np.testing.assert_allclose(embedder.embed(["east"]).vectors, [[DIAGONAL, DIAGONAL]], atol=1e-6)


def test_a_text_without_tokens_still_has_a_finite_unit_vector(tmp_path: Path) -> None:
    vectors = load(write_folder(tmp_path)).embed(["", "east"]).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_zero_vector_is_an_error_and_never_nan(tmp_path: Path) -> None:
    embedder = load(write_folder(tmp_path))
    with pytest.raises(ModelUnavailable, match="zero or not finite"):
        embedder.embed(["nowhere"])


def test_different_weights_have_different_fingerprints(tmp_path: Path) -> None:
    first = load(write_folder(tmp_path / "tiny")).profile
    same = load(write_folder(tmp_path / "tiny"), batch_size=7).profile
    other = load(write_folder(tmp_path / "tiny", output="embedding", pooled=True)).profile
    assert first.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.onnx", None, "holds none of model.onnx"),
        ("model.onnx", b"not a graph", "cannot be loaded"),
        ("tokenizer.json", None, "holds no tokenizer.json"),
        ("tokenizer.json", b"{}", "is not a tokenizer"),
    ],
)
def test_a_broken_folder_says_what_is_wrong(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    folder = write_folder(tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ModelUnavailable, match=message):
        load(folder)
