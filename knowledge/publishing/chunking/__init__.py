"""Chunkers: from the text of a file to chunks with titles, anchors and line ranges."""

from knowledge.publishing.chunking.chunkers import chunk_file
from knowledge.publishing.chunking.detection import looks_like_code

__all__ = ["chunk_file", "looks_like_code"]
