"""MkDocs, its Material theme and Zensical: marks of annotations in comments of code, `mkdocs.yml`, `zensical.toml`."""

import re

from bs4 import BeautifulSoup

from pipelines.indexing.reading.formats import MARKDOWN, PYTHON_MARKDOWN
from pipelines.indexing.reading.sources import (
    Read,
    SourceFolder,
    first_file,
    folder_below,
    toml_keys,
    types,
    yaml_keys,
)


def rewrite(soup: BeautifulSoup) -> None:
    """Write the mark of an annotation as its number."""
    for comment in soup.select("code span[class^=c]"):
        if comment.string and ")!" in comment.string:
            comment.string = re.sub(r"\((\d+)\)!", r"(\1)", comment.string)


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folder that a configuration in `place` publishes, None without one."""
    config = first_file(read, place, "zensical.toml", "mkdocs.yml", "mkdocs.yaml")
    if config is None:
        return None
    keys = toml_keys(config[1]).get("project", {}) if config[0].endswith(".toml") else yaml_keys(config[1])
    return SourceFolder(
        "MkDocs",
        config[0],
        root=folder_below(place, keys.get("docs_dir"), "docs"),
        url_style="html" if keys.get("use_directory_urls") is False else "directory",
        formats=types((MARKDOWN, PYTHON_MARKDOWN)),
    )
