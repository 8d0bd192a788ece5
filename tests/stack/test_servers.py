from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from knowledge.errors import StackError
from knowledge.home import Home
from knowledge.settings import Settings, StackSettings
from knowledge.stack.postgres import find_postgres
from knowledge.stack.process import wait_until
from knowledge.stack.servers import (
    ServerAddresses,
    current_addresses,
    embedded_processes,
    running_servers,
    stop_servers,
    stop_unused_servers,
)
from knowledge.stack.weaviate import find_weaviate
from knowledge.storage.postgres.probe import server_version
from knowledge.storage.weaviate.address import WeaviateAddress

LONG_QUERY = """
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    print("asking", flush=True)
    try:
        connection.execute("select count(*) from generate_series(1, 3000000)")
    except psycopg.Error:
        pass
"""


def _weaviate(addresses: ServerAddresses) -> WeaviateAddress:
    assert addresses.weaviate is not None
    return addresses.weaviate


def test_two_homes_run_side_by_side_and_keep_their_data(
    home_factory: Callable[[], Home],
) -> None:
    first, second = home_factory(), home_factory()
    with running_servers(first, Settings()) as a, running_servers(second, Settings()) as b:
        assert _weaviate(a).url != _weaviate(b).url
        assert a.database_admin_url != b.database_admin_url
        for addresses in (a, b):
            assert server_version(addresses.database_admin_url).startswith("18.")
        _create_class(_weaviate(a).url, _weaviate(a).api_key, "Kept")
        assert _classes(_weaviate(b).url, _weaviate(b).api_key) == []
        anonymous = httpx.get(f"{_weaviate(a).url}/v1/schema")
        assert anonymous.status_code == httpx.codes.UNAUTHORIZED
        meta = httpx.get(f"{_weaviate(a).url}/v1/meta", headers=_bearer(_weaviate(a).api_key))
        assert meta.json().get("modules") in (None, {})
    assert find_weaviate(first) is None and find_postgres(second) is None
    # Gossip and raft ports differ at every start; the data must be found all the same.
    with running_servers(first, Settings()) as again:
        assert _classes(_weaviate(again).url, _weaviate(again).api_key) == ["Kept"]


def test_a_second_user_shares_the_servers_and_the_last_one_out_stops_them(
    home: Home, postgres_only: Settings
) -> None:
    with running_servers(home, postgres_only) as outer:
        server = find_postgres(home)
        with running_servers(home, postgres_only) as inner:
            assert inner == outer
            assert find_postgres(home) == server
        assert find_postgres(home) == server
        assert not stop_unused_servers(home)
        assert server_version(outer.database_admin_url)
    assert find_postgres(home) is None
    assert current_addresses(home, postgres_only) is None


def test_the_server_of_a_killed_user_is_adopted_and_stopped_by_the_next_one(
    home: Home, postgres_only: Settings
) -> None:
    with _user(home) as user:
        server = find_postgres(home)
        user.kill()
        user.wait()
    assert server is not None and server.is_alive()
    with running_servers(home, postgres_only):
        assert find_postgres(home) == server
    assert not server.is_alive()


def test_a_user_in_another_process_keeps_the_server_running(
    home: Home, postgres_only: Settings
) -> None:
    with _user(home) as user:
        with running_servers(home, postgres_only):
            pass
        assert find_postgres(home) is not None
        user.kill()
        user.wait()
    assert stop_unused_servers(home)
    assert find_postgres(home) is None


def test_a_server_that_was_killed_starts_again_though_its_id_means_another_process_now(
    home: Home, postgres_only: Settings
) -> None:
    with running_servers(home, postgres_only):
        pass
    lines = [str(os.getpid()), str(home.postgres_dir), "1", "5432", str(home.postgres_dir)]
    (home.postgres_dir / "postmaster.pid").write_text("\n".join([*lines, "", "", ""]))
    (home.postgres_dir / ".s.PGSQL.5432.lock").write_text("\n".join(lines))
    with running_servers(home, postgres_only) as addresses:
        assert server_version(addresses.database_admin_url)


def test_a_server_killed_during_a_query_starts_again_after_the_query_has_ended(
    home: Home, postgres_only: Settings
) -> None:
    with running_servers(home, postgres_only) as addresses:
        psql = subprocess.Popen(
            [sys.executable, "-c", LONG_QUERY, addresses.database_admin_url],
            stdout=subprocess.PIPE,
            text=True,
        )
        with psql:
            assert psql.stdout is not None
            assert psql.stdout.readline() == "asking\n"
            server = find_postgres(home)
            assert server is not None
            os.kill(server.pid, signal.SIGKILL)
            assert wait_until(lambda: find_postgres(home) is None, 10)
            with running_servers(home, postgres_only) as again:
                assert server_version(again.database_admin_url)


def test_an_interrupted_creation_of_the_data_folder_is_repeated(
    home: Home, postgres_only: Settings
) -> None:
    unfinished = home.root / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    with running_servers(home, postgres_only) as addresses:
        assert server_version(addresses.database_admin_url)


@pytest.mark.parametrize("name", ["long" * 25, "with a space"])
def test_a_home_whose_path_a_socket_cannot_have_uses_a_private_folder_elsewhere(
    name: str, postgres_only: Settings
) -> None:
    top = Path(tempfile.mkdtemp(prefix="kh-", dir="/tmp"))
    home = Home(top / name / "home")
    try:
        for _ in range(2):  # the folder is there the second time
            with running_servers(home, postgres_only) as addresses:
                folder = Path(addresses.database_admin_url.partition("host=")[2])
                assert not folder.is_relative_to(top)
                assert folder.stat().st_mode & 0o077 == 0
                assert server_version(addresses.database_admin_url)
        shutil.rmtree(folder)
    finally:
        stop_servers(home)
        shutil.rmtree(top)


def test_external_servers_are_used_as_they_are_and_nothing_is_started(home: Home) -> None:
    settings = Settings(
        database_url="postgresql://somebody@db.example/knowledge",
        weaviate_url="http://vectors.example:8080/",
        weaviate_api_key="key",
    )
    with running_servers(home, settings) as addresses:
        assert addresses.database_admin_url == "postgresql://somebody@db.example/knowledge"
        assert _weaviate(addresses).url == "http://vectors.example:8080"
        assert _weaviate(addresses).grpc == "vectors.example:50051"
        assert _weaviate(addresses).api_key == "key"
        assert not addresses.postgres_embedded
    assert not home.postgres_dir.exists() and not home.weaviate_dir.exists()


def test_with_pgvector_there_is_no_weaviate_to_start_to_find_or_to_ask(home: Home) -> None:
    settings = Settings(vector_backend="pgvector")
    with running_servers(home, settings) as addresses:
        assert addresses.weaviate is None
        assert list(embedded_processes(home, settings)) == ["postgres"]
        assert find_weaviate(home) is None
        assert "weaviate" not in (home.run_dir / "servers.json").read_text()
    assert not home.weaviate_dir.exists()
    external = settings.model_copy(update={"database_url": "postgresql://somebody@db.example/k"})
    with running_servers(home, external) as addresses:
        assert addresses.weaviate is None


def test_a_damaged_database_folder_is_reported_in_one_line_that_quotes_the_log(
    home: Home, postgres_only: Settings
) -> None:
    with running_servers(home, postgres_only):
        pass
    (home.postgres_dir / "global" / "pg_control").write_bytes(b"")
    with pytest.raises(StackError) as caught, running_servers(home, postgres_only):
        pass
    assert "pg_control" in caught.value.message
    assert "the data folder is damaged: restore a backup" in caught.value.message
    assert "\n" not in caught.value.message


def test_an_explicit_weaviate_port_in_use_is_named_with_its_setting(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(
            database_url="postgresql://somebody@db.example/knowledge",
            stack=StackSettings(weaviate_port=port),
        )
        with pytest.raises(StackError) as caught, running_servers(home, settings):
            pass
    assert f"port {port} is in use" in caught.value.message
    assert "KNOWLEDGE__STACK__WEAVIATE_PORT" in caught.value.message
    assert find_weaviate(home) is None


def test_a_weaviate_that_cannot_write_its_data_is_reported_with_its_own_words(
    home: Home,
) -> None:
    home.weaviate_dir.write_text("a file where the folder should be")
    settings = Settings(database_url="postgresql://somebody@db.example/knowledge")
    with pytest.raises(StackError) as caught, running_servers(home, settings):
        pass
    assert "not a directory" in caught.value.message
    assert "\n" not in caught.value.message
    assert find_weaviate(home) is None


# --- what the tests use ---------------------------------------------------------------------


def _user(home: Home) -> subprocess.Popen[str]:
    user = subprocess.Popen(
        [sys.executable, "-m", "tests.stack.server_user", str(home.root)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    assert user.stdout.readline() == "ready\n"
    return user


def _bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _create_class(url: str, key: str | None, name: str) -> None:
    httpx.post(
        f"{url}/v1/schema", headers=_bearer(key), json={"class": name, "vectorizer": "none"}
    ).raise_for_status()


def _classes(url: str, key: str | None) -> list[str]:
    answer = httpx.get(f"{url}/v1/schema", headers=_bearer(key)).raise_for_status()
    return [entry["class"] for entry in answer.json()["classes"] or []]
