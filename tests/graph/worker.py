"""A process that asserts a file of facts in batches, to be killed or to run beside others.

``python -m tests.graph.worker TENANT FILE SIZE`` on the database of TEST_DATABASE_URL, as the
application role. A line is a fact, or ``{"retract": ID}``.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from itertools import islice
from pathlib import Path

from knowledge.graph.asserting import Batch, Retraction, assert_facts
from knowledge.graph.ontology.defaults import default_ontology
from knowledge.graph.reading import Teller, read_fact
from knowledge.graph.session import Writer
from knowledge.storage.postgres.database import Database

DATABASE_VARIABLE = "TEST_DATABASE_URL"


def assert_file(app: Database, tenant_id: str, file: Path, size: int) -> None:
    words, writer = default_ontology(), Writer("operator")
    teller = Teller(writer.principal, words)
    lines = iter([json.loads(line) for line in file.read_text().splitlines()])
    while part := list(islice(lines, size)):
        batch = Batch(
            [read_fact(line, teller) for line in part if "retract" not in line],
            [Retraction(uuid.UUID(line["retract"])) for line in part if "retract" in line],
        )
        assert_facts(app, tenant_id, "p1", batch, writer=writer, ontology=words)


def main(tenant_id: str, file: str, size: str) -> None:
    app = Database(os.environ[DATABASE_VARIABLE])
    try:
        assert_file(app, tenant_id, Path(file), int(size))
    finally:
        app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
