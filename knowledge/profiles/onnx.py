"""Embedders from a folder with an ONNX graph and a ``tokenizer.json``, run on the processor."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors
from tokenizers import Encoding, Tokenizer

from knowledge.errors import ModelUnavailable
from knowledge.profiles.profile import Embedded, EmbeddingProfile, Vectors, unit_rows
from knowledge.settings import ProfileSettings

MODEL_FILES: Final = (
    "model.onnx",
    "model_quantized.onnx",
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
)
"""Where the graph may lie in a folder; the first that exists is used."""

POOLED_OUTPUTS: Final = ("embedding", "sentence_embedding")
PAD_TOKENS: Final = ("[PAD]", "<pad>")
INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})

Pooling = Literal["graph", "mean", "cls"]


class OnnxEmbedder:
    """An `Embedder` over any folder with a graph and a tokenizer.

    The graph takes ``input_ids`` and, if it likes, ``attention_mask`` and ``token_type_ids``,
    int64 ``[n, t]``. Its answer is an output named ``embedding`` or ``sentence_embedding``,
    ``[n, d]``, else its first output of token states ``[n, t, d]``, averaged over the mask, or
    the first token's where ``1_Pooling/config.json`` says so.

    A dynamically quantised graph scales its activations by the whole batch, so that a vector
    would depend on its neighbours: such a graph gets one text at a time, and the same text
    always has the same vector.
    """

    def __init__(
        self,
        key: str,
        settings: ProfileSettings,
        folder: Path,
        *,
        model: str | None = None,
        weights: str | None = None,
    ) -> None:
        """Load ``folder``. ``model`` defaults to its name, ``weights`` to the checksum of its files.

        Raises `ModelUnavailable` when a file is missing or is not what it should be.
        """
        graph = _find_graph(folder)
        self._key = key
        self._tokenizer = _load_tokenizer(folder / "tokenizer.json", settings.max_tokens)
        self._pad_id = _pad_id(self._tokenizer)
        self._session = _open_session(graph)
        self._inputs = {given.name for given in self._session.get_inputs()}
        if unknown := self._inputs - INPUTS:
            raise ModelUnavailable(
                f"{graph} wants inputs {sorted(unknown)}; supported are {sorted(INPUTS)}"
            )
        self._output, self._pooling = _choose_output(self._session, folder, graph)
        self._batch_size = 1 if _is_dynamically_quantised(graph) else settings.batch_size
        probe, _ = self._run([self._tokenizer.encode("dimension")])
        self._profile = EmbeddingProfile.define(
            key,
            settings,
            model=model or folder.name,
            dimension=probe.shape[1],
            weights=weights or _checksum(graph, folder / "tokenizer.json", self._pooling),
        )

    @property
    def profile(self) -> EmbeddingProfile:
        return self._profile

    def embed(self, texts: Sequence[str]) -> Embedded:
        started = time.perf_counter()
        # One call a text: the tokenizer's own threads would outlive a fork of this process.
        encodings = [self._tokenizer.encode(self._profile.passage_prefix + text) for text in texts]
        batches = list(_batches([len(encoding) for encoding in encodings], self._batch_size))
        vectors = np.empty((len(texts), self._profile.dimension), dtype=np.float32)
        tokens = 0

        def run(rows: Sequence[int]) -> tuple[Vectors, int]:
            return self._run([encodings[row] for row in rows])

        with ThreadPoolExecutor(os.cpu_count() or 1, "embedding") as pool:
            for rows, (answer, read) in zip(batches, pool.map(run, batches), strict=True):
                vectors[rows] = answer
                tokens += read
        return Embedded(vectors, tokens, time.perf_counter() - started, 0.0)

    def embed_query(self, text: str) -> Vectors:
        vectors, _ = self._run([self._tokenizer.encode(self._profile.query_prefix + text)])
        row: Vectors = vectors[0]
        return row

    def _run(self, encodings: Sequence[Encoding]) -> tuple[Vectors, int]:
        """Unit vectors of one batch, ``[n, d]``, and the number of tokens read."""
        ids, mask = self._pad(encodings)
        given = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            given["token_type_ids"] = np.zeros_like(ids)
        feed = {name: array for name, array in given.items() if name in self._inputs}
        try:
            (answer,) = self._session.run([self._output], feed)
        except _RUNTIME_ERRORS as error:
            raise ModelUnavailable(
                f"profile {self._key}: the graph fails on {ids.shape[1]} tokens; "
                "lower max_tokens to what the model reads",
                profile=self._key,
            ) from error
        return unit_rows(_pool(answer, mask, self._pooling), key=self._key), int(mask.sum())

    def _pad(self, encodings: Sequence[Encoding]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # A tokenizer without special tokens reads nothing in an empty text; a graph needs one.
        longest = max(1, *(len(encoding) for encoding in encodings))
        ids = np.full((len(encodings), longest), self._pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = encoding.ids
            mask[row, : max(1, len(encoding))] = 1
        return ids, mask


_RUNTIME_ERRORS: Final[tuple[type[Exception], ...]] = (
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.InvalidProtobuf,
    runtime_errors.NotImplemented,
    runtime_errors.RuntimeException,
)


def _batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Row numbers in batches of alike length, so that little is padded."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _pool(answer: NDArray[Any], mask: NDArray[np.int64], pooling: Pooling) -> Vectors:
    if pooling == "graph":
        return answer
    if pooling == "cls":
        first: Vectors = answer[:, 0]
        return first
    weights = mask[:, :, None].astype(np.float32)
    mean: Vectors = (answer * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def _find_graph(folder: Path) -> Path:
    for name in MODEL_FILES:
        if (folder / name).is_file():
            return folder / name
    raise ModelUnavailable(f"{folder} holds none of {', '.join(MODEL_FILES)}")


def _load_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    if not path.is_file():
        raise ModelUnavailable(f"{path.parent} holds no tokenizer.json")
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises bare Exception
        raise ModelUnavailable(f"{path} is not a tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _pad_id(tokenizer: Tokenizer) -> int:
    known = (tokenizer.token_to_id(token) for token in PAD_TOKENS)
    return next((number for number in known if number is not None), 0)


def _open_session(graph: Path) -> onnxruntime.InferenceSession:
    # One thread a run: a second one makes a short query slower at twice the processor time, and
    # long work runs several batches side by side instead.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors: warnings are about the graph's style
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except _RUNTIME_ERRORS as error:
        raise ModelUnavailable(f"{graph} cannot be loaded: {error}") from error


def _choose_output(
    session: onnxruntime.InferenceSession, folder: Path, graph: Path
) -> tuple[str, Pooling]:
    ranks = {output.name: len(output.shape) for output in session.get_outputs()}
    for name in POOLED_OUTPUTS:
        if ranks.get(name) == 2:
            return name, "graph"
    for name, rank in ranks.items():
        if rank == 3:
            return name, _configured_pooling(folder)
    raise ModelUnavailable(
        f"{graph} has outputs {ranks} (name: rank); it needs one of {POOLED_OUTPUTS} of rank 2, "
        "or token states of rank 3"
    )


def _configured_pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean"
    return "cls" if json.loads(path.read_text()).get("pooling_mode_cls_token") else "mean"


def _is_dynamically_quantised(graph: Path) -> bool:
    nodes = onnx.load(graph, load_external_data=False).graph.node
    return any(node.op_type.startswith("DynamicQuantize") for node in nodes)


def _checksum(graph: Path, tokenizer: Path, pooling: Pooling) -> str:
    digest = hashlib.sha256(pooling.encode())
    for path in (graph, tokenizer):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
