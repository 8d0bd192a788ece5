"""What the model of the clock is compared on: each backend, with two profiles small enough to run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import hypothesis
import pytest

from knowledge.home import Home
from knowledge.profiles.registry import Profiles
from knowledge.runtime import Runtime
from knowledge.settings import ProfileSettings
from knowledge.stack.cache import cache_folder
from tests.asking import Asker, asking
from tests.profiles.test_onnx import write_folder
from tests.storage.conftest import BACKENDS

PROFILES = ("compass-a@1", "compass-b@1")
EXAMPLES_VARIABLE = "KNOWLEDGE_PROPERTY_EXAMPLES"
"""How many examples to try on each backend, other ones in every run. Unset: a few, the same ones."""
EXAMPLES = {"memory": 16, "pgvector": 6, "weaviate": 5}
STEPS = 25


@dataclass(frozen=True, slots=True)
class Site:
    """Where a model is compared: the product writing one backend, and asked on it."""

    runtime: Runtime
    asker: Asker


@pytest.fixture(scope="session")
def compasses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ProfileSettings]:
    """Two profiles of two dimensions that embed nearly nothing, in no time."""
    folder = tmp_path_factory.mktemp("compass")
    return {
        profile: ProfileSettings(
            provider="onnx", folder=str(write_folder(folder / profile[:9])), passage_prefix=prefix
        )
        for profile, prefix in zip(PROFILES, ("", "east "), strict=True)
    }


@pytest.fixture(params=BACKENDS)
def site(
    request: pytest.FixtureRequest,
    home: Home,
    runtime: Runtime,
    compasses: dict[str, ProfileSettings],
) -> Iterator[Site]:
    made = BACKENDS[request.param](home, runtime)
    settings = runtime.settings
    settings = settings.model_copy(
        update={
            "profiles": compasses,
            "indexing": settings.indexing.model_copy(update={"keep_days": 0.0}),
            # A negative deadline: garbage collection has no request to wait for.
            "retrieval": settings.retrieval.model_copy(update={"request_timeout_s": -1.0}),
        }
    )
    profiles = Profiles(settings, cache_folder())
    used = replace(runtime, index=made.index, settings=settings, profiles=profiles)
    try:
        with asking(used, made.search()) as asker:
            yield Site(used, asker)
    finally:
        made.index.close()


@pytest.fixture
def effort(request: pytest.FixtureRequest, site: Site) -> hypothesis.settings:
    """How much is tried: little and always the same, unless the environment asks for more.

    Making a failure small takes minutes: that too is done only when more is asked for.
    """
    wanted = os.environ.get(EXAMPLES_VARIABLE)
    generate, shrink = hypothesis.Phase.generate, hypothesis.Phase.shrink
    return hypothesis.settings(
        max_examples=int(wanted) if wanted else EXAMPLES[site.runtime.index.name],
        derandomize=wanted is None,
        database=None,
        stateful_step_count=STEPS,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(generate, shrink) if wanted else (generate,),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
