"""Chunks of one index, searched inside one snapshot: the nearest to a vector, those of given ids, those filters keep.

Chooses between the HNSW graph and an exact search. Knows no revisions and opens no transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from pipelines.records import Filters, Hit
from pipelines.store.connection import chunk_table, clean, statement

# A filter is searched exactly that keeps at most this share of the chunks, but never more than EXACT_MOST. Measured
# on 50,000 clustered chunks of 384 dimensions, k = 50, on two busy cores, by share kept: exactly, with the filters'
# own indexes, 1 % 2.5 ms, 5 % 4 ms, 20 % 12 ms; through the graph 1 % 92 ms (recall 0.94), 5 % 33 ms (0.89),
# 20 % 15 ms (0.91), 40 % 9 ms (0.98).
EXACT_SHARE, EXACT_LEAST, EXACT_MOST = 0.05, 1_000, 20_000

# The size of the list that a search of the graph keeps: k at least, and no more than pgvector allows.
EF_SEARCH, MOST_EF_SEARCH = 100, 1000

# The statement that keeps what a field of Filters asks for.
CONDITIONS = {
    "tags": "kept_by_tags",
    "version": "kept_by_version",
    "language": "kept_by_language",
    "url_prefix": "kept_by_url_prefix",
}


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What one snapshot held: a list of hits (cosine, best first) for each vector, and the chunks named by id.

    `too_slow`: the nearest were given up, their lists are empty.
    """

    revision: int
    nearest: list[list[Hit]]
    by_id: dict[str, Hit]
    too_slow: bool = False


class ChunkSearch:
    """Searches the chunk table of `index`, in the transaction of `cursor`, for what `filters` keep."""

    def __init__(
        self,
        cursor: psycopg.Cursor[DictRow],
        index: int,
        vector_type: str = "vector",
        filters: Filters = Filters(),
    ) -> None:
        self._cursor = cursor
        self._table = f"chunk_{index:d}"
        self._kept = _set_in(filters)
        self._parts: dict[str, sql.Composable] = {
            "chunk": chunk_table(index),
            "hit": hit_columns(),
            "kept": _conditions(self._kept),
            "vector": sql.SQL("halfvec" if vector_type == "halfvec" else "vector"),
        }

    def tune(self, k: int, timeout_s: float | None) -> None:
        """Until the transaction ends: visit enough of the graph for `k`, give up a statement after `timeout_s`."""
        asked = {
            "ef_search": str(min(max(k, EF_SEARCH), MOST_EF_SEARCH)),
            "timeout_ms": str(max(1, int(timeout_s * 1000)) if timeout_s else 0),
        }
        self._cursor.execute(statement("tune_search"), asked)

    def get(self, ids: Sequence[str]) -> dict[str, Hit]:
        """The chunks of these ids, as far as there are such."""
        return {row["id"]: hit_of(row, "none") for row in self._rows("get_chunks", ids=list(ids))} if ids else {}

    def nearest(self, vectors: Sequence[np.ndarray], k: int) -> list[list[Hit]]:
        """The `k` chunks nearest to each vector."""
        name = "search_exactly" if vectors and self._keeps_few() else "search_chunks"
        return [self._nearest(name, vector, k) for vector in vectors]

    def _nearest(self, name: str, vector: np.ndarray, k: int) -> list[Hit]:
        rows = self._rows(name, vector=vector, k=k)
        if len(rows) < k and name != "search_exactly":  # the graph ended before the filter had kept enough
            rows = self._rows("search_exactly", vector=vector, k=k)
        # An iterative scan goes on in a slightly wrong order.
        return sorted((hit_of(row, "cosine") for row in rows), key=lambda hit: (-hit.score, hit.chunk_id))

    def _keeps_few(self) -> bool:
        if not self._kept:
            return False
        bounds = {"share": EXACT_SHARE, "least": EXACT_LEAST, "most": EXACT_MOST}
        (row,) = self._rows("keeps_few", table=self._table, **bounds)
        return bool(row["few"])

    def _rows(self, name: str, **values: Any) -> list[DictRow]:
        return self._cursor.execute(statement(name, **self._parts), {**self._kept, **values}).fetchall()


def hit_columns() -> sql.Composable:
    """What hit_of reads, of a chunk table called c."""
    return statement("hit_columns")


def hit_of(row: Mapping[str, Any], kind: str) -> Hit:
    """A row of hit_columns with a score of that kind."""
    return Hit(
        chunk_id=row["id"],
        url=row["url"],
        anchors=tuple(row["anchors"]),
        title=row["title"],
        headings=tuple(row["headings"]),
        text=row["text"],
        text_hash=row["text_hash"],
        score=float(row["score"]),
        score_kind=kind,
        tags=tuple(row["tags"]),
        version=row["version"],
        language=row["language"],
        ordinal=row["ordinal"],
    )


def _set_in(filters: Filters) -> dict[str, Any]:
    """The filters that are set, as parameters."""
    asked = {**asdict(filters), "tags": [clean(tag) for tag in filters.tags]}
    return {name: clean(v) if isinstance(v, str) else v for name, v in asked.items() if v not in (None, [])}


def _conditions(kept: Mapping[str, Any]) -> sql.Composable:
    """A condition for each filter that is set, by the name of its statement."""
    return sql.SQL(" and ").join([statement(CONDITIONS[name]) for name in kept]) if kept else sql.SQL("true")
