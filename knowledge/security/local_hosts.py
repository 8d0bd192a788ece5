"""Whether an address is one that turns and names of memory may be sent to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from knowledge.errors import InvalidConfiguration

_LOCAL_NETWORKS: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8",  # loopback
        "::1/128",
        "10.0.0.0/8",  # private, RFC 1918
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",  # unique local, RFC 4193
        "169.254.0.0/16",  # link-local
        "fe80::/10",
    )
)
_HOST: Final = re.compile(
    r"[a-z0-9](?:[a-z0-9_-]{0,62}(?<!-))?(?:\.[a-z0-9](?:[a-z0-9_-]{0,62}(?<!-))?)*"
)
_ODD_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*")
_VISIBLE_ASCII: Final = re.compile(r"[!-~]+")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def require_local(
    url: str,
    allowed_hosts: Sequence[str],
    *,
    url_key: str = "memory.extraction.api_base",
    hosts_key: str = "memory.allowed_hosts",
) -> None:
    """Raise `InvalidConfiguration` unless ``url`` leads to this machine or a private network.

    Local are loopback, private (RFC 1918, unique local, link-local) addresses, ``localhost``,
    a ``unix:`` socket, and the hosts of ``allowed_hosts``: names or addresses without port. A
    name is not resolved: its answer may be another one when it is used. Whatever two parsers
    could read differently (user names, backslashes, numbers such as 0x7f.1, a final dot) is
    refused. The keys are those the message names.
    """
    if url.startswith(("unix:/", "unix:./")):
        return
    try:
        host = _host(url)
        if not _is_local(host, allowed_hosts):
            raise ValueError(f"{host} is not known to be local")
    except ValueError as error:
        raise InvalidConfiguration(
            f"{url_key}: {error}; give a loopback or private address"
            f" (http://127.0.0.1:11434/v1), or add its host to {hosts_key}",
            key=url_key,
        ) from None


def _host(url: str) -> str:
    """The host, in lower case and without brackets; raises `ValueError` with the reason."""
    if not _VISIBLE_ASCII.fullmatch(url) or "\\" in url:
        raise ValueError("the address holds blanks, backslashes or letters beyond ASCII")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("the address does not begin with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("the address holds a user name; give the key in a variable instead")
    host = parts.hostname or ""
    _ = parts.port  # ValueError when it is not one
    if "[" in parts.netloc:
        ipaddress.IPv6Address(host)
        return host
    if host.endswith("."):
        raise ValueError("the host ends in a dot; leave it out")
    if not _HOST.fullmatch(host):
        raise ValueError("the address has no valid host")
    if _ODD_NUMBER.fullmatch(host):
        ipaddress.IPv4Address(host)  # neither 2130706433 nor 0x7f.1 nor 0177.0.0.1
    return host


def _is_local(host: str, allowed_hosts: Sequence[str]) -> bool:
    allowed = {entry.strip().lower().strip("[]") for entry in allowed_hosts}
    if host == "localhost" or host in allowed:
        return True
    address = _address(host)
    if address is None:
        return False
    if address in {_address(entry) for entry in allowed}:
        return True
    return any(address in network for network in _LOCAL_NETWORKS)


def _address(host: str) -> _Address | None:
    """None for a name. An IPv4 address in an IPv6 one (::ffff:10.0.0.1) is the IPv4 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
