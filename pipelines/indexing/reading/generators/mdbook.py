"""mdBook: lines of code that only the compiler needs, a `book.toml`."""

import tomllib

from pipelines.indexing.reading.sources import Read, SourceFolder, folder_below


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folder that a configuration in `place` publishes, None without one."""
    text = read(place + "book.toml")
    if text is None:
        return None
    try:
        book = tomllib.loads(text).get("book", {})
    except tomllib.TOMLDecodeError:
        book = {}
    return SourceFolder(
        "mdBook",
        place + "book.toml",
        root=folder_below(place, book.get("src") if isinstance(book, dict) else None, "src"),
        url_style="html",
        exclude=(r"(^|/)SUMMARY\.md$",),
    )
