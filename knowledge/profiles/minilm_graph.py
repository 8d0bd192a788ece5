"""all-MiniLM-L6-v2 as an ONNX graph, built from its weights with numpy alone.

Architecture: BERT (Devlin et al., 2019) with 6 layers, 12 heads and 384 dimensions; mean
pooling over the attention mask and L2 normalisation, as the model card says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

LAYERS: Final = 6
HEADS: Final = 12
DIMENSION: Final = 384
HEAD_SIZE: Final = DIMENSION // HEADS
EPSILON: Final = 1e-12
OPSET: Final = 18
MASKED: Final = -10_000.0
"""Added to the attention scores of padding: exp() of it is 0 in float32, and it stays finite."""

Weights = Mapping[str, NDArray[Any]]


def build_graph(weights: Weights) -> onnx.ModelProto:
    """The model with inputs ``input_ids``, ``attention_mask`` and ``token_type_ids``, int64
    ``[n, t]``, and output ``embedding``, float32 ``[n, 384]``, rows of length 1.

    ``weights`` are the tensors of ``model.safetensors`` under their original names; `KeyError`
    when one is missing.
    """
    graph = _Graph(weights)
    hidden = graph.embeddings()
    mask = graph.attention_bias()
    for layer in range(LAYERS):
        hidden = graph.layer(hidden, mask, f"encoder.layer.{layer}")
    graph.pool(hidden)
    return graph.model()


class _Graph:
    """Collects nodes and constants; each method adds one block and returns its output's name."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(
        self, operation: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        name = output or f"{operation}_{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(operation, list(inputs), [name], name=f"node_{name}", **attributes)
        )
        return name

    def constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self._weights[name].astype(np.float32))

    def scalar(self, value: float) -> str:
        return self.constant(f"scalar_{value}", np.array(value, dtype=np.float32))

    def integers(self, *values: int) -> str:
        name = "integers_" + "_".join(map(str, values))
        return self.constant(name, np.array(values, dtype=np.int64))

    # blocks

    def embeddings(self) -> str:
        words = self.add("Gather", self.weight("embeddings.word_embeddings.weight"), "input_ids")
        types = self.add(
            "Gather",
            self.weight("embeddings.token_type_embeddings.weight"),
            "token_type_ids",
        )
        length = self.add("Shape", "input_ids", start=1, end=2)
        positions = self.add(
            "Slice",
            self.weight("embeddings.position_embeddings.weight"),
            self.integers(0),
            length,
            self.integers(0),
        )
        total = self.add("Add", self.add("Add", words, types), positions)
        return self.normalise(total, "embeddings.LayerNorm")

    def attention_bias(self) -> str:
        """``[n, 1, 1, t]``: 0 where there is a token, `MASKED` where there is padding."""
        mask = self.add("Cast", "attention_mask", output="mask", to=TensorProto.FLOAT)
        padding = self.add("Sub", self.scalar(1.0), mask)
        bias = self.add("Mul", padding, self.scalar(MASKED))
        return self.add("Unsqueeze", bias, self.integers(1, 2))

    def layer(self, hidden: str, mask: str, name: str) -> str:
        attended = self.attention(hidden, mask, f"{name}.attention")
        hidden = self.normalise(
            self.add("Add", attended, hidden), f"{name}.attention.output.LayerNorm"
        )
        inner = self.gelu(self.dense(hidden, f"{name}.intermediate.dense"))
        outer = self.dense(inner, f"{name}.output.dense")
        return self.normalise(self.add("Add", outer, hidden), f"{name}.output.LayerNorm")

    def attention(self, hidden: str, mask: str, name: str) -> str:
        query, key, value = self.projections(hidden, f"{name}.self")
        scores = self.add("MatMul", query, key)
        chances = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        context = self.add("Transpose", self.add("MatMul", chances, value), perm=[0, 2, 1, 3])
        merged = self.add("Reshape", context, self.integers(0, 0, DIMENSION))
        return self.dense(merged, f"{name}.output.dense")

    def projections(self, hidden: str, name: str) -> tuple[str, str, str]:
        """Query ``[n, h, t, s]``, key ``[n, h, s, t]`` and value, in one multiplication."""
        scale = np.float32(1 / np.sqrt(HEAD_SIZE))
        parts = [(part, scale if part == "query" else 1) for part in ("query", "key", "value")]
        kernel = [self._weights[f"{name}.{part}.weight"].T * factor for part, factor in parts]
        bias = [self._weights[f"{name}.{part}.bias"] * factor for part, factor in parts]
        joined = self.add(
            "Add",
            self.add(
                "MatMul",
                hidden,
                self.constant(f"{name}.kernel", np.concatenate(kernel, axis=1)),
            ),
            self.constant(f"{name}.bias", np.concatenate(bias)),
        )
        names = [f"{name}.{part}" for part, _ in parts]
        self._nodes.append(
            helper.make_node("Split", [joined], names, name=f"{name}.split", axis=-1, num_outputs=3)
        )
        shape = self.integers(0, 0, HEADS, HEAD_SIZE)
        query, key, value = (self.add("Reshape", part, shape) for part in names)
        return (
            self.add("Transpose", query, perm=[0, 2, 1, 3]),
            self.add("Transpose", key, perm=[0, 2, 3, 1]),
            self.add("Transpose", value, perm=[0, 2, 1, 3]),
        )

    def dense(self, hidden: str, name: str) -> str:
        kernel = self.constant(f"{name}.kernel", self._weights[f"{name}.weight"].T)
        return self.add("Add", self.add("MatMul", hidden, kernel), self.weight(f"{name}.bias"))

    def normalise(self, hidden: str, name: str) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", hidden, scale, bias, axis=-1, epsilon=EPSILON)

    def gelu(self, hidden: str) -> str:
        """x/2 · (1 + erf(x/√2)), spelt so that the runtime recognises and fuses it."""
        error = self.add("Erf", self.add("Div", hidden, self.scalar(float(np.sqrt(2)))))
        return self.add(
            "Mul",
            self.add("Mul", hidden, self.add("Add", error, self.scalar(1.0))),
            self.scalar(0.5),
        )

    def pool(self, hidden: str) -> None:
        column = self.add("Unsqueeze", "mask", self.integers(2))
        total = self.add("ReduceSum", self.add("Mul", hidden, column), self.integers(1), keepdims=0)
        # The mean's divisor cancels in the normalisation.
        length = self.add("ReduceL2", total, self.integers(1), keepdims=1)
        self.add("Div", total, length, output="embedding")

    def model(self) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", DIMENSION])]
        graph = helper.make_graph(
            self._nodes, "minilm", inputs, outputs, list(self._constants.values())
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 9
        onnx.checker.check_model(model)
        return model
