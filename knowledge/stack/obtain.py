"""Run as a program: have the server program ready before it is needed."""

from __future__ import annotations

import sys

from knowledge.errors import KnowledgeError
from knowledge.home import Home
from knowledge.settings import load_settings
from knowledge.stack.cache import cache_folder
from knowledge.storage.weaviate.binary import obtain_weaviate


def main() -> int:
    """Obtain it unless none is to be started. Exit code 1 with one line when it cannot be."""
    try:
        settings = load_settings(Home.locate())
        if settings.uses_weaviate and not settings.weaviate_url:
            obtain_weaviate(cache_folder(), lambda line: print(line, flush=True))
    except KnowledgeError as error:
        print(f"knowledge: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
