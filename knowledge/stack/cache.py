"""The folder of what can be obtained again: server programs, model weights."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The variable KNOWLEDGE_CACHE, else ``~/.cache/knowledge-retrieval``."""
    return Path(os.environ.get("KNOWLEDGE_CACHE") or "~/.cache/knowledge-retrieval").expanduser()
