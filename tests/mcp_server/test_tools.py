"""The table of tools: small, whole, and held to what agents pay for it."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer

from knowledge.errors import InvalidConfiguration
from knowledge.profiles.minilm import ensure_model
from knowledge.stack.cache import cache_folder
from mcp_server.inputs import compact_schema
from mcp_server.server import listed
from mcp_server.tools import MAX_TOOLS, TOOLS, selected

MAX_TOKENS = 5_000
CHARS_A_TOKEN = 3.5


def test_every_schema_together_fits_the_budget() -> None:
    sent = [
        tool.model_dump(by_alias=True, mode="json", exclude_none=True)
        for tool in map(listed, TOOLS)
    ]
    text = json.dumps({"tools": sent}, ensure_ascii=False, separators=(",", ":"))
    tokenizer = Tokenizer.from_file(str(ensure_model(cache_folder()) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pieces = len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert max(pieces, len(text.encode()) / CHARS_A_TOKEN) <= MAX_TOKENS


def test_there_are_few_tools_with_names_of_their_own() -> None:
    assert len(TOOLS) <= MAX_TOOLS
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)
    for tool in TOOLS:
        assert tool.description.endswith(".")
        assert compact_schema(tool.arguments)["additionalProperties"] is False
        assert set(tool.output["required"]) <= set(tool.output["properties"])


def test_tools_are_chosen_by_name_in_the_order_of_the_table() -> None:
    assert selected() == TOOLS
    chosen = selected(["recall_context", "knowledge_search"])
    assert [tool.name for tool in chosen] == ["knowledge_search", "recall_context"]
    reading = [tool.name for tool in selected(read_only=True)]
    assert reading == [
        tool.name for tool in TOOLS if not tool.writes and tool.name != "offload_status"
    ]
    with pytest.raises(InvalidConfiguration, match="there is no tool recall: use knowledge_search"):
        selected(["recall"])
    with pytest.raises(InvalidConfiguration, match="no tool is left"):
        selected(["offload_turns"], read_only=True)
