"""Writes answers as readers see them, for graders, and the labels to a separate file.

Uses answers and labeled questions, and calls nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pipelines.answering.writing.also_found import describe_found
from pipelines.records import RESULTS, Answer

SHOWN = 600  # words that a reader can look through without scrolling twice
ALSO_FOUND = 4  # sections listed by the page below an answer


def write_sheets(
    folder: Path, form: str, site: str, rows: Sequence[Mapping[str, Any]], answers: Sequence[Answer]
) -> None:
    """Write FORM-SITE.md (answers as readers see them) and truth-SITE.md (labels), with the same question numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = (sheet_of(f"{site}-{n}", row, one) for n, (row, one) in enumerate(zip(rows, answers, strict=True), 1))
    (folder / f"{form}-{site}.md").write_text("\n\n".join(shown) + "\n")
    labels = (truth_of(f"{site}-{n}", row) for n, row in enumerate(rows, 1))
    (folder / f"truth-{site}.md").write_text("\n\n".join(labels) + "\n")


def sheet_of(name: str, row: Mapping[str, Any], answer: Answer) -> str:
    """Return an answer as a reader sees it, up to SHOWN words."""
    before = [f"Asked before: {row['before']}"] if row.get("before") else []
    said = "I do not know" if not answer.known else "results" if answer.form == RESULTS else "answer"
    head = [f"# {name}", *before, f"Question: {row['question']}", f"Form: {said}. Confidence: {answer.confidence}."]
    return "\n\n".join([*head, "-----", cut("\n".join(chain([answer.text], _below(answer))), SHOWN), "-----"])


def _below(answer: Answer) -> Iterator[str]:
    """Yield the lines below the text: the sources, and the page's list "Also found"."""
    yield ""
    for one in answer.citations:
        yield f"[{one.n}] {one.title} <{one.source}>"
    found = describe_found(answer)[:ALSO_FOUND]
    if found:
        yield "\nAlso found:\n"
    for section in found:
        title = " › ".join(dict.fromkeys((section["title"], *section["headings"])))
        yield f"- {title} <{section['source']}>: {section['snippet']}"


def truth_of(name: str, row: Mapping[str, Any]) -> str:
    """Return a question's labels: files and headings of the sections that answer it."""
    sections = [f"- {one['path']} › {one['heading'] or '(the whole page)'}" for one in row["answers"]]
    return "\n".join([f"# {name} ({row['kind']})", "", *(sections or ["The documentation does not answer it."])])


def cut(text: str, most: int) -> str:
    """Return the first `most` words of a text, with its line breaks."""
    kept: list[str] = []
    for line in text.split("\n"):
        words = line.split()
        if len(words) > most:
            return "\n".join([*kept, " ".join(words[:most]), "(cut here)"])
        kept.append(line)
        most -= len(words)
    return "\n".join(kept)
