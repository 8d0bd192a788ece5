from __future__ import annotations

import socket

import pytest

from knowledge.errors import StackError
from knowledge.stack.ports import accepts, choose_port, free_ports, is_free


def test_a_preferred_port_in_use_is_replaced_by_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert accepts(port)
        assert not is_free(port)
        chosen = choose_port(None, preferred=port, setting="--api-port")
        assert chosen != port
        assert is_free(chosen)


def test_an_explicit_port_in_use_is_an_error_that_names_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=rf"port {port} is in use.*--api-port"):
            choose_port(port, setting="--api-port")


def test_pairs_of_ports_are_free_together_and_all_ports_are_distinct() -> None:
    single, *pairs = free_ports(1, pairs=2)
    ports = [single, *pairs, *(port + 1 for port in pairs)]
    assert len(set(ports)) == 5
    assert all(map(is_free, ports))
