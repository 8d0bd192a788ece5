"""An OpenAI-compatible embedding service whose every answer is scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Service", list[str]], tuple[int, bytes] | None]
"""Status and body, or None to hang until the service stops."""


@dataclass
class Service:
    """``script`` holds the answers to come; when it is empty, `good` answers."""

    script: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    url: str = ""


def vector(text: str) -> list[float]:
    """Not of length 1, and told from another text's."""
    return [3.0, float(len(text)), 0.5]


def answer_with(vectors: list[list[float]], tokens: int = 0) -> tuple[int, bytes]:
    # Reversed: a client must go by the index.
    data = [
        {"object": "embedding", "index": index, "embedding": values}
        for index, values in reversed(list(enumerate(vectors)))
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    body = {"object": "list", "model": "tiny", "data": data, "usage": usage}
    return 200, json.dumps(body).encode()


def good(service: Service, texts: list[str]) -> tuple[int, bytes]:
    return answer_with([vector(text) for text in texts], tokens=10 * len(texts))


def failing(status: int) -> Answer:
    """An error that echoes what was sent, as some services do."""

    def answer(service: Service, texts: list[str]) -> tuple[int, bytes]:
        message = f"cannot embed {texts} with {service.keys[-1]}"
        return status, json.dumps({"error": {"message": message}}).encode()

    return answer


def hanging(service: Service, texts: list[str]) -> None:
    service.stopped.wait()


@contextmanager
def running_service() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.requests.append(body)
            service.keys.append(self.headers["Authorization"])
            answer = service.script.pop(0) if service.script else good
            if (given := answer(service, body["input"])) is None:
                return
            status, content = given
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
