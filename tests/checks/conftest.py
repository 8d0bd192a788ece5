"""Relations of a few rows, and one generic check on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from dbt_like_checks import CheckOutcome, open_parquet, run_checks
from dbt_like_checks.parsing import parse_models

RunYaml = Callable[..., list[CheckOutcome]]


@pytest.fixture
def run_yaml() -> RunYaml:
    """Runs the checks of a YAML text on relations given as tables or lists of rows."""

    def run(text: str, **relations: pa.Table | list[dict[str, Any]]) -> list[CheckOutcome]:
        tables = {
            name: rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
            for name, rows in relations.items()
        }
        with open_parquet({}, tables=tables) as connection:
            return run_checks(parse_models(text, "checks.yml"), connection)

    return run
