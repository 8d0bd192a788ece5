"""Free TCP ports, and clear words when the wanted one is taken."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Final

from knowledge.errors import StackError

ATTEMPTS: Final = 100


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on ``host:port`` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def accepts(port: int, host: str = "127.0.0.1", timeout_s: float = 0.5) -> bool:
    """Whether something listens on ``host:port``."""
    try:
        socket.create_connection((host, port), timeout=timeout_s).close()
    except OSError:
        return False
    return True


def choose_port(
    explicit: int | None,
    *,
    setting: str,
    preferred: int | None = None,
    host: str = "127.0.0.1",
) -> int:
    """The ``explicit`` port, else ``preferred`` when free, else any free one.

    Raises `StackError` naming ``setting`` when the explicit port is in use.
    """
    if explicit is not None:
        if not is_free(explicit, host):
            raise StackError(
                f"port {explicit} is in use: stop the program that listens on it or choose "
                f"another port with {setting}",
                port=explicit,
            )
        return explicit
    if preferred is not None and is_free(preferred, host):
        return preferred
    return free_ports(1)[0]


def free_ports(single: int, pairs: int = 0) -> list[int]:
    """``single`` free ports, then ``pairs`` ports whose successor is free too; all distinct."""
    with ExitStack() as held:
        ports = [_hold(held, 0) for _ in range(single)]
        return ports + [_hold_pair(held) for _ in range(pairs)]


def _hold(held: ExitStack, port: int) -> int:
    listener = held.enter_context(socket.socket())
    listener.bind(("", port))
    return int(listener.getsockname()[1])


def _hold_pair(held: ExitStack) -> int:
    for _ in range(ATTEMPTS):
        first = _hold(held, 0)
        try:
            _hold(held, first + 1)
        except (OSError, OverflowError):
            continue  # the first one stays held, so that the next try differs
        return first
    raise StackError("no two neighbouring TCP ports are free: close some programs and try again")
