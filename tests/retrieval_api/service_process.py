"""The service as a process: ``python -m tests.retrieval_api.service_process``.

Reads its configuration as one line of JSON, writes its port, and ends with its standard input.
One process a service, because gRPC's asyncio client knows one event loop a process.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path

import uvicorn

from knowledge.home import Home
from knowledge.settings import load_settings
from knowledge.storage.backends import IndexLocation
from knowledge.storage.weaviate.address import WeaviateAddress
from retrieval_api.app import create_app
from retrieval_api.service import ServiceConfig


def main() -> None:
    given = json.loads(sys.stdin.readline())
    home = Home(Path(given["home"]))
    settings = load_settings(home, given["environ"])
    config = ServiceConfig(
        home=home,
        settings=settings,
        app_url=given["app_url"],
        index=IndexLocation(
            settings.vector_backend,
            home.installation_id,
            settings.indexing.flat_search_cutoff,
            WeaviateAddress(*given["weaviate"]) if given["weaviate"] else None,
        ),
        cache_dir=Path(given["cache"]),
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(create_app(config), log_level="warning", access_log=False)
    )

    def end_with_input() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_input, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
