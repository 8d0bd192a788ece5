"""``python -m retrieval_api``: serve the home named by KNOWLEDGE_HOME."""

from __future__ import annotations

import gc
import logging
import sys

import click
import uvicorn

from knowledge.errors import KnowledgeError
from knowledge.home import Home
from knowledge.memory.embedding import require_local_routes
from knowledge.profiles.registry import Profiles
from knowledge.runtime import index_location
from knowledge.settings import load_settings
from knowledge.stack.cache import cache_folder
from knowledge.stack.servers import running_servers
from knowledge.storage.postgres.bootstrap import prepare_database
from retrieval_api.app import create_app
from retrieval_api.service import ServiceConfig


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8080, show_default=True, type=click.IntRange(1, 65535))
def main(host: str, port: int) -> None:
    """Serve scoped, cited hybrid queries over HTTP."""
    home = Home.locate()
    # Models run in threads beside the event loop: neither may hold the other up for 5 ms.
    sys.setswitchinterval(0.0005)
    try:
        home.prepare()
        settings = load_settings(home)
        logging.basicConfig(
            level=settings.log_level.upper(),
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
        logging.getLogger("httpx").setLevel(logging.WARNING)
        profiles = Profiles(settings, cache_folder())
        require_local_routes(settings.memory, profiles, settings.default_profile)
        with running_servers(home, settings) as servers:
            urls = prepare_database(servers.database_admin_url, home.database_key)
            config = ServiceConfig(
                home=home,
                settings=settings,
                app_url=urls.app_url,
                index=index_location(home, settings, servers),
                cache_dir=cache_folder(),
            )
            # What is loaded stays: collections need not look at it again while requests run.
            gc.collect()
            gc.freeze()
            gc.set_threshold(20_000, 20, 20)
            uvicorn.run(
                create_app(config),
                host=host,
                port=port,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
            )
    except KnowledgeError as error:
        sys.exit(f"knowledge: {error.message}")


if __name__ == "__main__":
    main()
