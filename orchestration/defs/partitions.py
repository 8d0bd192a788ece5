"""One partition a collection: everything about a collection is found under its key."""

import warnings
from typing import Any

import dagster as dg

collections = dg.DynamicPartitionsDefinition(name="collections")
"""Keys are ``{tenant}.{collection}``; the sensor ``published_chunks`` adds them."""


def collection_check(name: str, **spec: Any) -> dg.AssetCheckSpec:
    """A check whose results are kept for each collection."""
    with warnings.catch_warnings():
        # Checks with partitions are a preview in Dagster 1.13, and the one preview used here.
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        return dg.AssetCheckSpec(name, partitions_def=collections, **spec)
