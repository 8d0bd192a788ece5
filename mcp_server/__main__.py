"""``python -m mcp_server``: serve one agent on standard input and output.

The order of what is imported matters: `initialize` is answered before anything large is loaded.
"""

from __future__ import annotations

import gc
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from mcp_server.first_words import early_answer


def main() -> None:
    """Serve until standard input ends; what is wrong with the set-up is one line, exit code 1."""
    gc.disable()  # what is loaded stays: looking through it again and again takes a tenth of a second
    options = _options(sys.argv[1:])
    read_fd, write_fd = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    first, answer = early_answer(_first_line(read_fd))
    if answer:
        os.write(write_fd, answer)
    from mcp_server.serving import serve_agent

    gc.freeze()
    gc.enable()
    try:
        sys.exit(serve_agent(options, first, read_fd, write_fd))
    except KeyboardInterrupt:
        sys.exit(130)


def _first_line(fd: int) -> bytes:
    """What comes until the end of a line, or of the input; there may be more behind it."""
    held = b""
    while b"\n" not in held and (chunk := os.read(fd, 65_536)):
        held += chunk
    return held


def _options(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(prog="knowledge mcp", allow_abbrev=False)
    parser.add_argument("--url")
    parser.add_argument("--key-file", type=Path)
    parser.add_argument("--tools")
    parser.add_argument("--read-only", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
