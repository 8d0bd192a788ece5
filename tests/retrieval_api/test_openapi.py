"""The OpenAPI document against the service it describes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from retrieval_api.app import routes
from retrieval_api.docs import openapi
from retrieval_api.problems import TITLES

UNDOCUMENTED = {"/openapi.json", "/docs"}


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in (operation.get("requestBody", {}), *operation["responses"].values()):
        yield from part.get("content", {}).values()


EXAMPLES = [
    pytest.param(content, id=f"{operation['operationId']}-{number}")
    for _, _, operation in _operations()
    for number, content in enumerate(_contents(operation))
    if "example" in content
]


@pytest.mark.parametrize("content", EXAMPLES)
def test_an_example_is_valid_under_the_schema_it_stands_beside(content: dict[str, Any]) -> None:
    schema = {**content["schema"], "components": openapi()["components"]}
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    assert [error.message for error in validator.iter_errors(content["example"])] == []


def test_every_route_is_documented_and_nothing_else_is() -> None:
    served = {
        (re.sub(r"{\w+}", "{}", route.path), method)
        for route in routes()
        if isinstance(route, Route) and route.path not in UNDOCUMENTED
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert served == {(re.sub(r"{\w+}", "{}", path), method) for path, method, _ in _operations()}


def test_no_default_gives_a_model_up() -> None:
    body = openapi()["components"]["schemas"]["RebuildBody"]
    assert "default" not in body["properties"]["embeddingProfileVersion"]


def test_every_path_parameter_is_declared() -> None:
    for path, _, operation in _operations():
        declared = [
            entry["name"] for entry in operation.get("parameters", ()) if entry["in"] == "path"
        ]
        assert re.findall(r"{(\w+)}", path) == declared, path


def test_every_problem_is_titled_as_the_service_titles_it() -> None:
    for _, _, operation in _operations():
        for status, response in operation["responses"].items():
            for example in response.get("content", {}).values():
                if "Problem" in str(example["schema"]):
                    assert example["example"]["title"] == TITLES[int(status)]
                    assert example["example"]["status"] == int(status)


def test_the_operations_keep_their_names() -> None:
    assert sorted(operation["operationId"] for _, _, operation in _operations()) == [
        "assertFacts",
        "cancelRebuild",
        "confirmSuggestion",
        "expandGraph",
        "findPaths",
        "forgetFacts",
        "healthz",
        "issueToken",
        "listCollections",
        "listEvents",
        "listIndexRevisions",
        "listMemoryNames",
        "listSuggestions",
        "metrics",
        "offloadTurns",
        "postEvent",
        "promoteFacts",
        "queryGraph",
        "querySubgraph",
        "readCitations",
        "readHistory",
        "readOffloadJob",
        "readQuery",
        "readRebuild",
        "readyz",
        "rebuildIndexes",
        "recallContext",
        "rejectSuggestion",
        "search",
        "searchEntities",
        "upsertTriples",
        "verifyFacts",
    ]


async def _document(app: Starlette, path: str) -> dict[str, Any]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        found: dict[str, Any] = (await client.get(path)).json()
        return found


def test_a_mounted_service_documents_where_it_is_mounted() -> None:
    inner = Starlette(routes=routes())
    outer = Starlette(routes=[Mount("/kb", app=inner)])
    document = asyncio.run(_document(outer, "/kb/openapi.json"))
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]
    assert document["servers"] == [{"url": "/kb"}]
    assert flow["tokenUrl"] == "/kb/oauth/token"
