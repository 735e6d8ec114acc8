"""Measures BM25 on translated documentation: the share of questions whose page is among the first five chunks.

    git clone https://github.com/fastapi/fastapi DIR && python -m benchmarks.translated DIR

The German, French and Chinese pages are one mixed index. Each language is also measured separately. Prints a line for
each.
"""

import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from pipelines.lexical import LexicalIndex
from pipelines.records import Hit, Index, IndexSettings
from pipelines.store.lexical_archives import Piece

QUESTIONS = Path(__file__).parent / "questions" / "translated.jsonl"
K = 5
INDEX = Index(1, "translated", IndexSettings(), "live", 1)


class Chunks:
    """Chunks with the interface that BM25 needs from the store."""

    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits

    @contextmanager
    def scan_chunks(self, index: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        yield 1, iter(self.hits)

    def lexical_pieces(self, index: int) -> AbstractContextManager[tuple[None, Iterator[Piece]]]:
        return nullcontext((None, iter(())))

    def changes_since(self, index: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        return 1, []


def read_chunks(docs: Path, language: str) -> Iterator[Hit]:
    """Yield the sections of one language's pages at numbered URLs, because the files' URLs have English words."""
    for number, file in enumerate(sorted((docs / language / "docs").rglob("*.md"))):
        page = file.relative_to(docs / language / "docs").with_suffix("").as_posix()
        for place, section in enumerate(re.split(r"^#+ ", file.read_text(), flags=re.MULTILINE)):
            heading, _, text = re.sub(r"\{ #.*? \}|\{\*.*?\*\}", "", section).partition("\n")
            url = f"https://d.test/{language}/{number}"
            yield Hit(f"{language} {page} {place}", url, headings=(heading,), text=text, language=language)


def measure(name: str, hits: list[Hit], questions: list[dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lexical, seconds = LexicalIndex(Path(folder) / "1"), []
        lexical.sync(Chunks(hits), INDEX)
        found = 0
        for row in questions:
            began = time.perf_counter()
            scores = lexical.search(row["question"], K).scores
            seconds.append(time.perf_counter() - began)
            found += any(chunk.startswith(f"{row['language']} {row['page']} ") for chunk, _ in scores)
    took = 1000 * statistics.median(seconds)
    print(f"{name}: {len(hits):,} chunks, {found} of {len(questions)} at {K}, {took:.2f} ms a question")


def main() -> None:
    docs = Path(sys.argv[1]) / "docs"
    questions = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    languages = sorted({row["language"] for row in questions})
    everything = []
    for language in languages:
        hits = list(read_chunks(docs, language))
        everything += hits
        measure(f"{language} alone", hits, [row for row in questions if row["language"] == language])
    for language in languages:
        measure(f"{language} of all", everything, [row for row in questions if row["language"] == language])


if __name__ == "__main__":
    main()
