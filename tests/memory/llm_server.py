"""An OpenAI-compatible chat service on a free port, whose every answer is scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FACTS = [
    {
        "subject": "checkout",
        "predicate": "DEPENDS_ON",
        "object": "PaymentGateway",
        "confidence": 0.9,
    },
    {"subject": "user", "predicate": "prefers", "object": "pnpm", "confidence": 0.8},
]

Mode = Callable[["LlmServer", BaseHTTPRequestHandler, dict[str, Any]], None]


@dataclass
class LlmServer:
    """``script`` holds the modes to come, one a request; when it is empty, ``mode`` answers.

    ``sent`` counts the bytes that an endless answer got rid of.
    """

    mode: Mode
    script: list[Mode] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    sent: int = 0
    url: str = ""


def completion(content: object) -> bytes:
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps({"object": "chat.completion", "choices": choices}).encode()


def answering(content: object, status: int = 200) -> Mode:
    """A mode that says ``content``, whatever it was asked."""

    def answer(server: LlmServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        _send(handler, status, completion(content))

    return answer


def failing(status: int) -> Mode:
    """An error that echoes what was sent, as some services do."""

    def answer(server: LlmServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        message = f"cannot complete {body['messages']}"
        _send(handler, status, json.dumps({"error": {"message": message}}).encode())

    return answer


good = answering(json.dumps({"triples": FACTS}))
fenced = answering(f"```json\n{json.dumps({'triples': FACTS}, indent=2)}\n```")
prose = answering(
    f"Sure! Here's what \"I found:\n{json.dumps(FACTS[0])}\nand also {json.dumps([FACTS[1]])}. Done {{."
)
truncated = answering(json.dumps({"triples": FACTS})[:-20])
wrong_keys = answering(
    json.dumps(
        {
            "relations": [
                {"head": "checkout", "relation": "depends on", "tail": "PaymentGateway"},
                {"from": {"name": "user", "type": "person"}, "type": "prefers", "to": "pnpm"},
            ]
        }
    )
)
lies = answering(
    json.dumps(
        {
            "triples": [
                {"subject": "Elvis", "predicate": "OWNS", "object": "Graceland", "confidence": 1},
                {**FACTS[0], "confidence": 0.3},
                {**FACTS[0], "confidence": float("nan")},
                {**FACTS[0], "subject": "checkout " * 5_000},
                {**FACTS[0], "object": "Payment\u202eyawetaG"},
                {"subject": "checkout", "predicate": "MOVED_TO", "object": "Mars"},
                FACTS[1],
            ]
        }
    )
)


def hangs(server: LlmServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    server.stopped.wait()


def slow(server: LlmServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """A byte now and then, for ever: no single read times out."""
    _begin(handler, 200)
    while not server.stopped.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def garbage(server: LlmServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Bytes without end."""
    _begin(handler, 200)
    while not server.stopped.is_set():
        handler.wfile.write(b'{"choices": [\xff\x00{[' * 1_000)
        server.sent += 22_000


def without_response_format(
    server: LlmServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]
) -> None:
    """Refuses what it does not know, as older services do."""
    (failing(400) if "response_format" in body else good)(server, handler, body)


@contextmanager
def running_llm(mode: Mode = good, *script: Mode) -> Iterator[LlmServer]:
    llm = LlmServer(mode, list(script))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            llm.requests.append(body)
            llm.keys.append(self.headers["Authorization"])
            llm.asked.set()
            answer = llm.script.pop(0) if llm.script else llm.mode
            with suppress(ConnectionError):
                answer(llm, self, body)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    llm.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield llm
    finally:
        llm.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _begin(handler: BaseHTTPRequestHandler, status: int, length: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    if length is not None:
        handler.send_header("Content-Length", str(length))
    handler.end_headers()


def _send(handler: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
    _begin(handler, status, len(content))
    handler.wfile.write(content)
