from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Knowledge


@pytest.fixture
def create(knowledge: Knowledge, tenant: str) -> Any:
    return lambda *extra: knowledge(
        "clients", "create", "--tenant", tenant, "--projects", "p1,p2", *extra
    )


def test_create_prints_id_and_secret_and_nothing_else(create: Any) -> None:
    made = create("--json").json
    assert made.keys() == {"clientId", "clientSecret"}
    assert len(made["clientSecret"]) >= 43


def test_scopes_are_taken_by_short_and_full_name(
    knowledge: Knowledge, create: Any, tenant: str
) -> None:
    create("--groups", "eng, ops", "--scopes", "read,factory.knowledge.admin")
    (client,) = knowledge("clients", "list", "--tenant", tenant, "--json").json["clients"]
    assert client["scopes"] == ["factory.knowledge.read", "factory.knowledge.admin"]
    assert client["groups"] == ["eng", "ops"]
    assert client["projects"] == ["p1", "p2"]
    assert client["revokedAt"] is None


def test_the_list_never_shows_a_secret(knowledge: Knowledge, create: Any, tenant: str) -> None:
    secret = create("--json").json["clientSecret"]
    assert secret not in knowledge("clients", "list", "--tenant", tenant, "--json").out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--scopes", "write,root"), "unknown scope root"),
        (("--groups", "two words"), "is not valid"),
        (("--projects", ","), "a client needs at least one project"),
        (("--projects", "P 1"), "project 'P 1' is not valid"),
    ],
)
def test_a_wrong_value_is_one_line(create: Any, extra: tuple[str, ...], message: str) -> None:
    assert message in create(*extra).failure


def test_set_replaces_groups_or_projects(knowledge: Knowledge, create: Any) -> None:
    client = create("--groups", "eng", "--json").json["clientId"]
    changed = knowledge("clients", "set", client, "--groups", "ops", "--json").json
    assert (changed["groups"], changed["projects"]) == (["ops"], ["p1", "p2"])
    changed = knowledge("clients", "set", client, "--projects", "p3", "--json").json
    assert (changed["groups"], changed["projects"]) == (["ops"], ["p3"])
    changed = knowledge("clients", "set", client, "--groups", "", "--json").json
    assert changed["groups"] == []


def test_a_revoked_client_asks_no_more(knowledge: Knowledge, create: Any, tenant: str) -> None:
    client = create("--json").json["clientId"]
    assert knowledge("clients", "revoke", client).code == 0
    place = ("--tenant", tenant, "--project", "p1", "--as", client)
    assert f"tenant {tenant} has no client to ask as" in knowledge("search", "x", *place).failure


@pytest.mark.parametrize("arguments", [("revoke", "nobody"), ("set", "nobody", "--groups", "x")])
def test_an_unknown_client_is_one_line(knowledge: Knowledge, arguments: tuple[str, ...]) -> None:
    assert knowledge("clients", *arguments).failure == "there is no client nobody"
