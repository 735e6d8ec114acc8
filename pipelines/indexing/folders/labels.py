"""Collects the labels that stand before titles in a folder's sources, for references from other files.

A label is `.. _name:` in reStructuredText and `(name)=` in MyST. Sphinx shows a reference to it as the title.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from pipelines.indexing.folders.titles import title_of
from pipelines.indexing.reading.formats import MARKDOWN, RESTRUCTURED_TEXT, DocumentFormat, format_of_name

READERS = 16  # concurrent requests to a bucket
_LABELS = {
    RESTRUCTURED_TEXT: re.compile(r"\.\. _(`[^`]+`|[^`].*):"),
    MARKDOWN: re.compile(r"\(([^()]+)\)="),
}
_TITLE_LINES = {RESTRUCTURED_TEXT: 3, MARKDOWN: 1}  # a line above, the title, a line below


class Labels:
    """The labels in the files that `paths` lists; `read` returns the text of a file, "" if it can't be read."""

    def __init__(self, paths: Callable[[], Iterable[str]], read: Callable[[str], str]) -> None:
        self._paths, self._read = paths, read

    def title(self, label: str, path: str) -> str:
        """Return the title that `label` names, "" if there is none. Docutils fills in the labels of the page itself."""
        file, title = self._titles.get(_normal(label), ("", ""))
        return title if file != path or format_of_name(path) is not RESTRUCTURED_TEXT else ""

    @cached_property
    def _titles(self) -> dict[str, tuple[str, str]]:
        """The file and the title of each label. The first reference to a label reads all files."""
        paths = [path for path in self._paths() if format_of_name(path) in _LABELS]
        with ThreadPoolExecutor(READERS) as readers:
            texts = zip(paths, readers.map(self._read, paths), strict=True)
            return {label: (path, title) for path, text in texts for label, title in _labels(path, text)}


def _labels(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each label that stands before a title, perhaps among others, with the title."""
    entry: DocumentFormat = format_of_name(path) or MARKDOWN
    lines = [line.strip() for line in text.split("\n")]
    waiting: list[str] = []
    for number, line in enumerate(lines):
        if label := _LABELS[entry].fullmatch(line):
            waiting.append(_normal(label[1].strip("`")))
        elif line and waiting:
            below = lines[number : number + _TITLE_LINES[entry]]
            title = title_of(re.sub(r"^#+", "#", "\n".join(below)), entry)  # a heading of any level
            yield from ((label, title) for label in waiting if title)
            waiting = []


def _normal(label: str) -> str:
    return " ".join(label.lower().replace("\\", "").split())
