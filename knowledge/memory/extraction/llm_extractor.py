"""Facts by a language model behind an OpenAI-compatible address on this machine or network."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from knowledge.errors import InvalidConfiguration, ModelUnavailable
from knowledge.graph.ontology.model import Ontology
from knowledge.memory.extraction.extractor import (
    USER,
    ExtractedTriple,
    Extraction,
    Kind,
    Spelling,
    Turn,
    distinct,
    spoken,
)
from knowledge.memory.extraction.parsing import Answer, parse_answer
from knowledge.memory.extraction.prompt import batches, messages
from knowledge.security.local_hosts import require_local

MAX_ANSWER_BYTES: Final = 1_000_000
MAX_ANSWER_TOKENS: Final = 4_096
RETRY_DELAY_S: Final = 0.5
_WORD: Final = re.compile(r"\w+")


class _Transient(Exception):
    """Worth one more try; the message is the reason."""


@dataclass(frozen=True, slots=True)
class LlmExtractor:
    """An `Extractor` over ``POST {api_base}/chat/completions``.

    ``api_base`` such as ``http://127.0.0.1:11434/v1``. ``timeout_s`` bounds each request from
    connecting to the last byte. A lost connection or a status of 5xx is tried again once. No
    redirect is followed and no proxy of the environment used: either would lead elsewhere.
    """

    api_base: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    allowed_hosts: tuple[str, ...] = ()
    retry_delay_s: float = RETRY_DELAY_S

    def __post_init__(self) -> None:
        """Raises `InvalidConfiguration` when ``api_base`` is not local, or not http."""
        require_local(self.api_base, self.allowed_hosts)
        if not self.api_base.startswith(("http://", "https://")):
            raise InvalidConfiguration(
                "memory.extraction.api_base: write http://HOST:PORT/v1 in lower case"
            )

    @property
    def kind(self) -> Kind:
        return "llm"

    @property
    def reason(self) -> str | None:
        return None

    async def extract(
        self, turns: Sequence[Turn], known_names: Sequence[str], ontology: Ontology
    ) -> Extraction:
        """One request a batch of turns; a batch with an unreadable answer is dropped, counted.

        Raises `ModelUnavailable` when a request fails or no answer at all can be read.
        """
        spelling = Spelling(known_names)
        triples: list[ExtractedTriple] = []
        dropped: Counter[str] = Counter()
        readable = asked = 0
        async with self._client() as client:
            for text in batches(spoken(turns)):
                content = await self._ask(client, messages(text, known_names, ontology))
                is_told = _stands_in(text, spelling)
                answer: Answer = await asyncio.to_thread(
                    parse_answer, content, ontology, spelling, is_told
                )
                asked += 1
                readable += answer.readable
                dropped.update(answer.dropped)
                dropped["unreadable_answer"] += not answer.readable
                triples += answer.triples
        if asked and not readable:
            raise ModelUnavailable(f"the model {self.model} gave no readable answer")
        return Extraction(distinct(triples), +dropped, self.model, self.kind)

    def _client(self) -> httpx.AsyncClient:
        headers = {"Accept-Encoding": "identity"}  # what is small must not become large
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return httpx.AsyncClient(
            headers=headers, timeout=self.timeout_s, trust_env=False, follow_redirects=False
        )

    async def _ask(self, client: httpx.AsyncClient, asked: list[dict[str, str]]) -> str:
        """The content of the answer. Raises `ModelUnavailable` with the reason, never the text."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": asked,
            "temperature": 0,
            "max_tokens": MAX_ANSWER_TOKENS,
            "stream": False,
            "response_format": {"type": "json_object"},
        }
        reason = ""
        for attempt in range(2):
            if attempt:
                await asyncio.sleep(self.retry_delay_s)
            try:
                return await self._complete(client, body)
            except _Transient as error:
                reason = str(error)
        raise self._unavailable(reason)

    async def _complete(self, client: httpx.AsyncClient, body: dict[str, Any]) -> str:
        status, content = await self._post(client, body)
        if status == 400 and "response_format" in body:
            del body["response_format"]  # also for what is asked again
            status, content = await self._post(client, body)
        if status >= 500:
            raise _Transient(f"status {status}")
        if status != 200:
            raise self._unavailable(f"status {status}")
        return await asyncio.to_thread(self._content, content)

    async def _post(self, client: httpx.AsyncClient, body: dict[str, Any]) -> tuple[int, bytes]:
        url = self.api_base.rstrip("/") + "/chat/completions"
        try:
            # httpx bounds each read; an answer that drips must end as well.
            async with asyncio.timeout(self.timeout_s):
                async with client.stream("POST", url, json=body) as response:
                    return response.status_code, await self._read(response)
        except (TimeoutError, httpx.TimeoutException):
            raise self._unavailable(f"no answer within {self.timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Transient(type(error).__name__) from None

    async def _read(self, response: httpx.Response) -> bytes:
        read = bytearray()
        async for part in response.aiter_raw(65_536):
            read += part
            if len(read) > MAX_ANSWER_BYTES:
                raise self._unavailable(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
        return bytes(read)

    def _content(self, answer: bytes) -> str:
        try:
            content = json.loads(answer)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._unavailable("the answer is not a chat completion") from None
        if not isinstance(content, str):
            raise self._unavailable("the answer is not a chat completion")
        return content

    def _unavailable(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(f"the model {self.model} failed: {reason}")


def _stands_in(text: str, spelling: Spelling) -> Callable[[str, str], bool]:
    """Whether all words of two names stand in ``text``; a known name may stand there otherwise."""
    words = set(_WORD.findall(text.casefold()))

    def is_there(name: str) -> bool:
        return words.issuperset(_WORD.findall(name.casefold()))

    def is_told(subject: str, object_: str) -> bool:
        there = [name for name in (subject, object_) if name != USER and is_there(name)]
        rest = [name for name in (subject, object_) if name != USER and name not in there]
        return bool(there) and all(spelling.knows(name) for name in rest)

    return is_told
