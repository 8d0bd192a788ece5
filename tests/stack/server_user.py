"""Run as a program: use a home's PostgreSQL until killed. Says ``ready`` when it runs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.servers import running_servers

if __name__ == "__main__":
    settings = Settings(weaviate_url="http://127.0.0.1:1")
    with running_servers(Home(Path(sys.argv[1])), settings):
        print("ready", flush=True)
        signal.pause()
