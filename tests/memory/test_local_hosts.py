"""Which addresses count as local; nothing is resolved."""

from __future__ import annotations

import pytest

from knowledge.errors import InvalidConfiguration
from knowledge.security.local_hosts import require_local

LOCAL = [
    "http://127.0.0.1:11434/v1",
    "http://127.8.9.1",
    "http://localhost:8000/v1",
    "http://LOCALHOST/v1",
    "https://10.1.2.3/v1",
    "http://172.16.0.1",
    "http://172.31.255.255",
    "http://192.168.1.20:1234/v1",
    "http://169.254.10.1",
    "http://[::1]:11434/v1",
    "http://[fd12:3456:789a::1]/v1",
    "http://[fe80::1]/v1",
    "http://[::ffff:10.0.0.1]/v1",
    "unix:/run/llm.sock",
]

REFUSED = [
    "http://8.8.8.8/v1",
    "https://api.openai.com/v1",
    "http://172.32.0.1",
    "http://11.0.0.1",
    "http://0.0.0.0:11434",
    "http://[::]/v1",
    "http://[2001:4860:4860::8888]/v1",
    "http://[::ffff:8.8.8.8]/v1",
    "http://[64:ff9b::8.8.8.8]/v1",
    "http://[2002:808:808::]/v1",
    "http://[::127.0.0.1]/v1",
    "http://127.0.0.1@evil.com/v1",
    "http://evil.com#@127.0.0.1/",
    "http://user:pass@127.0.0.1/",
    "http://127.0.0.1:80@evil.com/",
    "http://evil.com\\@127.0.0.1/",
    "http://127.0.0.1\\.evil.com/",
    "http://127.0.0.1.evil.com/",
    "http://localhost.evil.com/",
    "http://evil.com/localhost",
    "http://evil.com?127.0.0.1",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://localhost./",
    "http://127.0.0.1%2eevil.com/",
    "http://１２７.0.0.1/",
    "http://ⓛocalhost/",
    "http://127。0。0。1/",
    "http://127.0.0.1\t.evil.com/",
    "http://127.0.0.1 /",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:port/",
    "http://[fe80::1%25eth0/",
    "http://[127.0.0.1]/",
    "http:///v1",
    "http:127.0.0.1",
    "//127.0.0.1/v1",
    "127.0.0.1:11434",
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1/",
    "",
    "http://-localhost/",
    "http://ollama/v1",
]


@pytest.mark.parametrize("url", LOCAL)
def test_a_local_address_is_taken(url: str) -> None:
    require_local(url, [])


@pytest.mark.parametrize("url", REFUSED)
def test_any_other_address_is_refused_with_the_key_to_change(url: str) -> None:
    with pytest.raises(InvalidConfiguration) as refusal:
        require_local(url, [])
    assert refusal.value.message.startswith("memory.extraction.api_base: ")
    assert "memory.allowed_hosts" in refusal.value.message
    assert "\n" not in refusal.value.message


def test_an_allowed_host_is_taken_and_nothing_that_only_looks_like_it() -> None:
    allowed = ["Ollama.lan", "203.0.113.7", "2001:db8::7"]
    for url in ("http://ollama.LAN:11434/v1", "http://203.0.113.7/", "http://[2001:db8:0::7]/"):
        require_local(url, allowed)
    for url in ("http://ollama.lan.evil.com/", "http://x.ollama.lan/", "http://203.0.113.70/"):
        with pytest.raises(InvalidConfiguration, match="allowed_hosts"):
            require_local(url, allowed)


def test_the_message_names_the_key_that_was_given_and_no_password() -> None:
    with pytest.raises(InvalidConfiguration) as refusal:
        require_local("http://me:hunter2@10.0.0.1/", [], url_key="profiles.big@1.api_base")
    assert refusal.value.message.startswith("profiles.big@1.api_base: ")
    assert "hunter2" not in refusal.value.message
