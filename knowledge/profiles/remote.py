"""Remote embedding models through LiteLLM, an optional extra."""

from __future__ import annotations

import importlib
import logging
import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from knowledge.errors import InvalidConfiguration, ModelUnavailable, ProfileMismatch
from knowledge.profiles.profile import Embedded, EmbeddingProfile, Vectors, unit_rows
from knowledge.settings import ProfileSettings

INSTALL: Final = "pip install 'knowledge-retrieval[remote]'"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a remote model is asked again.

    At most ``attempts`` calls, each ended after ``timeout_s``. Between two the wait is drawn
    from 50 to 100 % of ``first_delay_s`` doubled each time, at most ``max_delay_s``.
    """

    attempts: int = 4
    timeout_s: float = 30.0
    first_delay_s: float = 0.5
    max_delay_s: float = 8.0

    def delay_s(self, failures: int) -> float:
        """The wait after the ``failures``-th failure, counted from 1."""
        longest = min(self.max_delay_s, self.first_delay_s * 2.0 ** (failures - 1))
        return longest * random.uniform(0.5, 1.0)


class LiteLLMEmbedder:
    """An `Embedder` over any embedding service LiteLLM knows.

    The dimension is probed at construction. Rate limits, server errors, time-outs and lost
    connections are tried again within `Retry`; then, and for any other refusal, `ModelUnavailable`
    is raised. Neither texts nor keys nor the service's own words appear in logs or errors: a
    service may echo what it was sent. An empty text is sent as one space, as services refuse "".
    """

    def __init__(
        self,
        key: str,
        settings: ProfileSettings,
        *,
        retry: Retry | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if not settings.model:
            raise InvalidConfiguration(f"profile {key}: provider litellm needs `model`")
        self._litellm, self._errors = _import_litellm()
        self._key = key
        self._retry = retry or Retry()
        self._target = _target(key, settings, os.environ if environ is None else environ)
        self._dimension: int | None = None
        probe, _, _ = self._request(["dimension"])
        self._dimension = probe.shape[1]
        self._profile = EmbeddingProfile.define(
            key, settings, model=settings.model, dimension=self._dimension, weights=None
        )

    @property
    def profile(self) -> EmbeddingProfile:
        return self._profile

    def embed(self, texts: Sequence[str]) -> Embedded:
        started = time.perf_counter()
        prefix, size = self._profile.passage_prefix, self._profile.batch_size
        vectors = np.empty((len(texts), self._profile.dimension), dtype=np.float32)
        tokens, cost = 0, self._known_cost(0, 0.0)
        for start in range(0, len(texts), size):
            batch = [prefix + text for text in texts[start : start + size]]
            vectors[start : start + size], read, price = self._request(batch)
            tokens += read
            price = self._known_cost(read, price)
            cost = None if cost is None or price is None else cost + price
        return Embedded(vectors, tokens, time.perf_counter() - started, cost)

    def embed_query(self, text: str) -> Vectors:
        vectors, _, _ = self._request([self._profile.query_prefix + text])
        row: Vectors = vectors[0]
        return row

    def _known_cost(self, tokens: int, reported: float | None) -> float | None:
        """The configured price times ``tokens``, else what LiteLLM's price list says."""
        price = self._profile.cost_per_million_tokens
        return reported if price is None else tokens * price / 1e6

    def _request(self, texts: Sequence[str]) -> tuple[Vectors, int, float | None]:
        """One batch: unit vectors ``[n, d]``, tokens read, dollars or None."""
        response = self._call([text or " " for text in texts])
        vectors = self._checked(response, len(texts))
        usage = getattr(response, "usage", None)
        tokens = int(getattr(usage, "prompt_tokens", 0) or 0)
        # LiteLLM reports 0 for a model that is not on its price list.
        cost = getattr(response, "_hidden_params", {}).get("response_cost") or None
        return vectors, tokens, cost

    def _call(self, texts: list[str]) -> Any:
        for attempt in range(1, self._retry.attempts + 1):
            try:
                return self._litellm.embedding(
                    input=texts,
                    timeout=self._retry.timeout_s,
                    max_retries=0,
                    **self._target,
                )
            except self._errors as error:
                reason = _reason(error)
                if not _is_transient(error) or attempt == self._retry.attempts:
                    # Without its cause: the service's words may hold the texts.
                    raise self._unavailable(f"{reason} (attempt {attempt})") from None
                _log.info(
                    "embedding request failed, trying again",
                    extra={"profile": self._key, "reason": reason, "attempt": attempt},
                )
            time.sleep(self._retry.delay_s(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _checked(self, response: Any, count: int) -> Vectors:
        try:
            items = sorted(response.data, key=lambda item: int(item["index"]))
            order = [int(item["index"]) for item in items]
            rows = [np.asarray(item["embedding"], dtype=np.float32) for item in items]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._unavailable("the answer is not a list of embeddings") from None
        if order != list(range(count)):
            raise self._unavailable(f"{len(rows)} embeddings came back for {count} texts")
        expected = self._dimension or rows[0].size
        if any(row.shape != (expected,) for row in rows):
            raise ProfileMismatch(
                f"profile {self._key}: the model answers in "
                f"{sorted({row.size for row in rows})} dimensions, not {expected}: "
                "give a changed model a new profile version",
                profile=self._key,
            )
        return unit_rows(np.stack(rows), key=self._key)

    def _unavailable(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"profile {self._key}: the embedding service failed: {reason}; "
            "check its address, its key and that it is running",
            profile=self._key,
        )


_import_lock = threading.Lock()
_TALKATIVE_LOGGERS: Final = ("LiteLLM", "openai", "httpx", "httpcore")
"""Their debug messages hold whole requests."""


def _import_litellm() -> tuple[Any, type[Exception]]:
    """LiteLLM, imported on first use (it takes seconds and much memory), and the base class of
    its errors, which is that of the OpenAI client."""
    with _import_lock:
        # Read while importing: otherwise LiteLLM fetches its price list from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        try:
            litellm: Any = importlib.import_module("litellm")
            import openai
        except ImportError as error:
            raise ModelUnavailable(
                f"remote profiles need an optional package: run `{INSTALL}`"
            ) from error
        # Its own retries would multiply ours: 0 as an argument counts as not given.
        litellm.DEFAULT_MAX_RETRIES = 0
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.turn_off_message_logging = True
        for name in _TALKATIVE_LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)
        return litellm, openai.OpenAIError


def _target(key: str, settings: ProfileSettings, environ: Mapping[str, str]) -> dict[str, Any]:
    target: dict[str, Any] = {"model": settings.model}
    if settings.api_base:
        target["api_base"] = settings.api_base
    if settings.api_key_env:
        if not environ.get(settings.api_key_env):
            raise InvalidConfiguration(
                f"profile {key}: set the variable {settings.api_key_env}, which api_key_env names"
            )
        target["api_key"] = environ[settings.api_key_env]
    return target


def _is_transient(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return isinstance(error, TimeoutError | ConnectionError)
    return status in (408, 429) or status >= 500


def _reason(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    name = type(error).__name__
    return f"{name}, status {status}" if status else name
