"""mdBook: lines of code that only the compiler needs, a `book.toml`."""

import tomllib

from pipelines.indexing.reading.generator import Generator
from pipelines.indexing.reading.sources import Read, SourceFolder, folder_below


def _sources(read: Read, place: str) -> SourceFolder | None:
    text = read(place + "book.toml")
    if text is None:
        return None
    try:
        book = tomllib.loads(text).get("book", {})
    except tomllib.TOMLDecodeError:
        book = {}
    return SourceFolder(
        GENERATOR.name,
        place + "book.toml",
        root=folder_below(place, book.get("src") if isinstance(book, dict) else None, "src"),
        url_style="html",
        exclude=(r"(^|/)SUMMARY\.md$",),
    )


GENERATOR = Generator("mdBook", marks="boring", hidden="code span.boring", sources=_sources)
