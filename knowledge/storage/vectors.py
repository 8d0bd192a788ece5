"""The embedding cache: vectors in Parquet, one row a text, tenant and profile.

The same text is never embedded twice for a tenant and profile, and a rebuild needs no source.
PostgreSQL knows which part holds a text; parts are written aside and renamed, so a killed run
loses at most the batch it was writing.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from knowledge.errors import IndexInconsistent, InvalidVector
from knowledge.storage.postgres.database import Database

Matrix = npt.NDArray[np.float32]
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@-]")
UNIT_TOLERANCE: Final = 1e-3
"""How far the length of a vector may be from 1."""

_Part = tuple[dict[bytes, int], Matrix]
MAX_PARTS_OPEN: Final = 512
"""About 0.1 MB each for its rows; the vectors are mapped."""


class VectorStore:
    """Vectors of one tenant and one profile (``name@version``) under ``root``."""

    def __init__(self, app: Database, root: Path, *, tenant_id: str, profile: str) -> None:
        self._app = app
        self._tenant_id = tenant_id
        self._profile = profile
        self._opened: dict[str, _Part] = {}
        self._folder = root / tenant_id / _UNSAFE.sub("_", profile)

    def missing(self, hashes: Sequence[bytes]) -> list[bytes]:
        """Those of ``hashes`` (32 bytes each) that have no vector, each once, order kept."""
        known = self._parts(hashes)
        return [value for value in dict.fromkeys(hashes) if value not in known]

    def put(self, hashes: Sequence[bytes], vectors: Matrix) -> int:
        """Store ``vectors`` [n, d] float32 under ``hashes`` [n]. Returns the bytes written.

        Raises `InvalidVector`, and stores none of them, unless all are finite, of length 1 and of
        the profile's dimension.
        """
        if not len(hashes):
            return 0
        self._require_valid(vectors, len(hashes))
        self._folder.mkdir(parents=True, exist_ok=True)
        part = f"{uuid.uuid4().hex}.parquet"
        aside = self._folder / f".{part}"
        table = pa.table(
            {
                "text_hash": pa.array(hashes, pa.binary(32)),
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel()),
                    vectors.shape[1],
                ),
            }
        )
        try:
            pq.write_table(table, aside, compression="none")
            size = aside.stat().st_size
            aside.rename(self._folder / part)
        finally:
            aside.unlink(missing_ok=True)
        with self._app.tenant(self._tenant_id) as connection:
            connection.execute(
                "insert into vectors (tenant_id, profile, text_hash, part)"
                " select %s, %s, value, %s from unnest(%s::bytea[]) value"
                " on conflict (tenant_id, profile, text_hash) do update set part = excluded.part",
                [self._tenant_id, self._profile, part, list(hashes)],
            )
        return size

    def get(self, hashes: Sequence[bytes]) -> Matrix:
        """Vectors [n, d] in the order of ``hashes``.

        Raises `IndexInconsistent` for a missing one, and for one that is not finite or not of the
        dimension of the others: an index must never be given it.
        """
        known = self._parts(hashes)
        wanted: dict[str, list[bytes]] = defaultdict(list)
        for value in dict.fromkeys(hashes):
            if value not in known:
                raise IndexInconsistent(
                    f"a vector of profile {self._profile} is missing: materialise embeddings again"
                )
            wanted[known[value]].append(value)
        found: dict[bytes, npt.NDArray[np.float32]] = {}
        for part, values in wanted.items():
            found.update(self._read(part, values))
        if len({len(vector) for vector in found.values()}) > 1:
            raise IndexInconsistent(
                f"vectors of profile {self._profile} differ in dimension: run"
                " `knowledge check --suite embeddings` to see which"
            )
        return np.stack([found[value] for value in hashes]) if hashes else np.empty((0, 0), "f4")

    def parts(self, hashes: Sequence[bytes]) -> dict[bytes, Path]:
        """The Parquet file that holds the vector of each text; texts without one are left out."""
        return {value: self._folder / part for value, part in self._parts(hashes).items()}

    def _read(self, part: str, values: Sequence[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        path = self._folder / part
        try:
            rows, matrix = self._open(part)
            found = {value: matrix[rows[value]] for value in values}
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise self._broken(path, "cannot be read") from error
        if not np.isfinite(np.stack(list(found.values()))).all():
            raise self._broken(path, "holds a vector that is not finite")
        return found

    def _open(self, part: str) -> _Part:
        """A part's rows by text hash and its matrix, mapped; kept, as no part ever changes.

        Versions are read in the order of their ids, so a batch of them meets every part.
        """
        opened = self._opened.pop(part) if part in self._opened else self._map(part)
        self._opened[part] = opened
        if len(self._opened) > MAX_PARTS_OPEN:
            del self._opened[next(iter(self._opened))]
        return opened

    def _map(self, part: str) -> _Part:
        table = pq.read_table(self._folder / part, memory_map=True)
        hashes: Any = table["text_hash"].to_pylist()
        vectors: Any = table["vector"].combine_chunks()
        rows = {value: index for index, value in enumerate(hashes)}
        return rows, vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)

    def _broken(self, path: Path, what: str) -> IndexInconsistent:
        return IndexInconsistent(
            f"{path} {what}: remove the file and materialise embeddings again",
            profile=self._profile,
        )

    def _require_valid(self, vectors: Matrix, count: int) -> None:
        dimension = self._dimension()
        if vectors.ndim != 2 or len(vectors) != count or dimension not in (None, vectors.shape[1]):
            raise InvalidVector(
                f"profile {self._profile} makes {count} vectors of dimension {dimension},"
                f" not {' x '.join(map(str, vectors.shape))}: nothing was stored"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(vectors, axis=1)
        wrong = int(np.count_nonzero(~(np.abs(lengths - 1) <= UNIT_TOLERANCE)))
        if wrong:
            raise InvalidVector(
                f"{wrong} of {count} vectors of profile {self._profile} are not finite or not of"
                " length 1: nothing was stored; check the model's files or the service"
            )

    def _dimension(self) -> int | None:
        """The dimension of the stored profile, None where no profile of the name is stored."""
        with self._app.tenant(self._tenant_id) as connection:
            row = connection.execute(
                "select dimension from embedding_profiles where profile = %s", [self._profile]
            ).fetchone()
        return int(row["dimension"]) if row else None

    def _parts(self, hashes: Sequence[bytes]) -> dict[bytes, str]:
        if not hashes:
            return {}
        with self._app.tenant(self._tenant_id) as connection:
            rows = connection.execute(
                "select text_hash, part from vectors where tenant_id = %s and profile = %s"
                " and text_hash = any(%s)",
                [self._tenant_id, self._profile, list(dict.fromkeys(hashes))],
            ).fetchall()
        # A part that was deleted holds nothing: its texts are embedded again.
        present = {
            part for part in {row["part"] for row in rows} if (self._folder / part).is_file()
        }
        return {bytes(row["text_hash"]): row["part"] for row in rows if row["part"] in present}
