"""``knowledge keys``: shown once, listed without their secret, revoked for good."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.runtime import Runtime
from knowledge.security.keys import parse_key
from tests.cli.conftest import Knowledge


@pytest.fixture
def create(knowledge: Knowledge, tenant: str) -> Any:
    def invoke(*extra: str) -> Any:
        place = ("--tenant", tenant, "--project", "p1", "--name", "ada's laptop")
        return knowledge("keys", "create", *place, *extra)

    return invoke


def test_a_key_is_shown_once_and_never_kept(
    knowledge: Knowledge, create: Any, runtime: Runtime, tenant: str
) -> None:
    shown = create("--json").json
    key = parse_key(shown["key"])
    assert key is not None
    assert shown["prefix"] == f"kk_{key.client_id}"
    with runtime.owner.transaction() as connection:
        row = connection.execute(
            "select clients::text as row from clients where client_id = %s", [key.client_id]
        ).fetchone()
    assert row is not None
    assert key.secret not in row["row"]
    for listed in (knowledge("keys", "list", "--tenant", tenant), create()):
        assert key.secret not in listed.out


def test_keys_are_listed_with_project_scopes_and_state(
    knowledge: Knowledge, create: Any, tenant: str
) -> None:
    first = create("--json", "--scopes", "read", "--days", "30").json
    second = create("--json", "--groups", "eng").json
    knowledge("keys", "revoke", second["prefix"])
    listed = knowledge("keys", "list", "--tenant", tenant, "--json").json["keys"]
    assert [(key["prefix"], key["state"]) for key in listed] == [
        (first["prefix"], "active"),
        (second["prefix"], "revoked"),
    ]
    assert listed[0]["name"] == "ada's laptop"
    assert listed[0]["projectId"] == "p1"
    assert listed[0]["expiresAt"] is not None
    assert (listed[1]["groups"], listed[1]["expiresAt"]) == (["eng"], None)
    shown = knowledge("keys", "list", "--tenant", tenant).out
    assert "ada's laptop" in shown
    assert "read,write" in shown
    assert "active" in shown


def test_keys_are_no_clients(knowledge: Knowledge, create: Any, tenant: str) -> None:
    prefix = create("--json").json["prefix"]
    client_id = prefix.removeprefix("kk_")
    assert knowledge("clients", "list", "--tenant", tenant, "--json").json["clients"] == []
    assert "there is no client" in knowledge("clients", "revoke", client_id).failure
    assert "there is no client" in knowledge("clients", "set", client_id, "--groups", "x").failure
    place = ("--tenant", tenant, "--project", "p1", "--as", client_id)
    assert "has no client" in knowledge("search", "x", *place).failure


def test_a_client_is_no_key(knowledge: Knowledge, tenant: str) -> None:
    made = knowledge("clients", "create", "--tenant", tenant, "--projects", "p1", "--json").json
    assert "there is no key" in knowledge("keys", "revoke", made["clientId"]).failure
    assert "has no key" in knowledge("keys", "list", "--tenant", tenant).out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--scopes", "read,root"), "unknown scope root"),
        (("--scopes", ","), "at least one scope"),
        (("--groups", "two words"), "is not valid"),
        (("--days", "0"), "valid for 1 to"),
        (("--days", "999999"), "valid for 1 to"),
        (("--name", " "), "a key's name"),
        (("--name", "x" * 121), "a key's name"),
        (("--name", "two\nlines"), "a key's name"),
        (("--project", "P 1"), "project 'P 1' is not valid"),
    ],
)
def test_a_wrong_value_is_one_line(create: Any, extra: tuple[str, ...], message: str) -> None:
    assert message in create(*extra).failure


def test_an_unknown_key_is_one_line(knowledge: Knowledge) -> None:
    assert "there is no key kk_key-0" in knowledge("keys", "revoke", "kk_key-0").failure


def test_a_key_is_revoked_by_the_whole_of_it_without_showing_it_and_once(
    knowledge: Knowledge, create: Any
) -> None:
    made = create("--json").json
    secret = made["key"].removeprefix(made["prefix"])
    first = knowledge("keys", "revoke", made["key"])
    assert first.out == f"Key {made['prefix']} is revoked, from its next request on.\n"
    again = knowledge("keys", "revoke", made["prefix"])
    assert again.out == f"Key {made['prefix']} was revoked already.\n"
    assert knowledge("keys", "revoke", made["key"], "--json").json["wasRevoked"] is True
    unknown = knowledge("keys", "revoke", f"kk_key-0{secret}").failure
    assert "there is no key kk_key-0:" in unknown
    assert secret not in unknown
