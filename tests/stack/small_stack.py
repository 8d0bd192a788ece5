"""Run as a program: the real supervisor with a real PostgreSQL and one small part.

``small_stack.py HOME API_PORT|- [fails|foreign|taken]``. The part serves HTTP and has a child that left
its session, as code servers may; with ``fails`` it ends at once with a message, with ``foreign`` it
answers as another installation does, and with ``taken`` another program takes the port just before
the part starts for the first time.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from knowledge.errors import KnowledgeError
from knowledge.home import Home
from knowledge.settings import Settings, StackSettings
from knowledge.stack.parts import Part, StackContext, parts_of
from knowledge.stack.record import only_supervisor
from knowledge.stack.supervisor import Supervisor

SERVE = """
import http.server, json, subprocess, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"status": "ok", "version": "1", "installation": sys.argv[2]}).encode())
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
server.serve_forever()
"""
FAIL = "import sys; sys.exit('the part says why')"


def small_parts(mode: str) -> tuple[Part, ...]:
    program = FAIL if mode == "fails" else SERVE
    by_name = {part.name: part for part in parts_of(Settings())}

    takers: list[socket.socket] = []

    def command(context: StackContext) -> list[str]:
        if mode == "taken" and not takers:
            takers.append(socket.create_server(("127.0.0.1", context.api_port)))
        answers_as = "another" if mode == "foreign" else context.home.installation_id
        return [sys.executable, "-c", program, str(context.api_port), answers_as]

    return (
        by_name["postgres"],
        replace(by_name["api"], after=("postgres",), command=command, start_timeout_s=5.0),
    )


def main(root: str, port: str, mode: str = "") -> int:
    home = Home(Path(root))
    home.prepare()
    settings = Settings(
        weaviate_url="http://127.0.0.1:1",
        stack=StackSettings(api_port=None if port == "-" else int(port)),
    )
    parts = small_parts(mode)
    with only_supervisor(home) as alone:
        assert alone
        try:
            Supervisor(home, settings, partial(print, flush=True), parts).run()
        except KnowledgeError as error:
            print(f"knowledge: {error.message}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
