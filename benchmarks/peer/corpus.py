"""Exports a published index to files for other libraries: chunks, vectors, questions with their vectors."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from psycopg import sql

from pipelines.files.atomic_files import whole_folder
from pipelines.page.stored import plain_of
from pipelines.store import Store
from pipelines.store.chunks import chunk_table

# Questions with their vectors, rows of length 1.
Questions = tuple[list[str], np.ndarray]


@dataclass(frozen=True)
class Corpus:
    """A live index of Raydex at a database URL, and the folder with its files."""

    url: str
    collection: str
    folder: Path

    @property
    def questions(self) -> list[str]:
        return list(json.loads((self.folder / "questions.json").read_text(encoding="utf-8")))

    @property
    def chunks(self) -> int:
        return len(np.load(self.folder / "vectors.npy", mmap_mode="r"))


def export(parent: Path, url: str, collection: str, questions: Callable[[], Questions]) -> Corpus:
    """Write the files of a live index below `parent`, once per revision."""
    with Store(url) as store:
        index = store.live_index(collection)
        folder = parent / f"{collection}-{index.id}-{index.revision}"
        if not folder.exists():
            with whole_folder(folder) as making:
                _write_chunks(store, index.id, making)
                texts, vectors = questions()
                (making / "questions.json").write_text(json.dumps(texts), encoding="utf-8")
                np.save(making / "question_vectors.npy", vectors)
    return Corpus(url, collection, folder)


def _write_chunks(store: Store, index: int, folder: Path) -> None:
    read = sql.SQL("select id, embedding::vector as embedding from {}").format(chunk_table(index))
    rows = store.in_transaction(lambda connection: connection.execute(read, binary=True).fetchall())
    vectors = {row["id"]: row["embedding"].to_numpy().astype(np.float32) for row in rows}
    with store.scan_chunks(index) as (_, hits), (folder / "chunks.jsonl").open("w", encoding="utf-8") as lines:
        ordered = []
        for hit in hits:
            # Joined like in the chunker: the input of the embedding model.
            path = " > ".join(dict.fromkeys((hit.title, *hit.headings)))
            text = f"{path}\n{plain_of(hit)}".lstrip("\n")
            print(json.dumps({"id": hit.chunk_id, "text": text, "source": hit.source}), file=lines)
            ordered.append(vectors[hit.chunk_id])
    np.save(folder / "vectors.npy", np.stack(ordered))
