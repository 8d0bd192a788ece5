"""Homes with short paths (a unix socket's path is limited), removed with what runs in them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from knowledge.home import Home
from knowledge.settings import Settings
from knowledge.stack.servers import stop_servers
from knowledge.stack.supervisor import end_leftovers


@pytest.fixture
def home_factory() -> Iterator[Callable[[], Home]]:
    """Makes prepared homes with nothing running."""
    homes: list[Home] = []

    def make() -> Home:
        home = Home(Path(tempfile.mkdtemp(prefix="kh-", dir="/tmp")))
        home.prepare()
        homes.append(home)
        return home

    yield make
    for home in homes:
        end_leftovers(home)
        stop_servers(home)
        shutil.rmtree(home.root)


@pytest.fixture
def home(home_factory: Callable[[], Home]) -> Home:
    return home_factory()


@pytest.fixture
def postgres_only() -> Settings:
    """Weaviate counts as external and is never asked: the fast half of the servers."""
    return Settings(weaviate_url="http://127.0.0.1:1")
