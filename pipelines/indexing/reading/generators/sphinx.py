"""Sphinx and its themes: containers with an id, API entries, and a `conf.py`."""

import re
from collections.abc import Mapping
from typing import Any

from pipelines.indexing.reading.formats import (
    MARKDOWN,
    MYST,
    MYST_NOTEBOOK,
    NBSPHINX,
    NOTEBOOK,
    RESTRUCTURED_TEXT,
    TEXT,
)
from pipelines.indexing.reading.sources import Read, SourceFolder, first_file, glob_in_folders, python_keys, upwards

_A_KEY = r"^\s*(?:extensions|html_theme|project|source_suffix)\s*[+:=]"
_BUILDS_FOLDERS = r"^\s*builder:\s*[\"']?dirhtml"


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folder published by a configuration in `place`, or None."""
    text = read(place + "conf.py")
    if text is None or not re.search(_A_KEY, text, re.MULTILINE):
        return None
    keys = python_keys(text)
    patterns, suffixes = keys.get("exclude_patterns"), keys.get("source_suffix") or ()
    excluded = [name for name in patterns if isinstance(name, str)] if isinstance(patterns, (list, tuple)) else []
    text_is_source = TEXT.suffixes[0] in str(suffixes if isinstance(suffixes, str) else list(suffixes))
    formats = [(MARKDOWN, MYST), (NOTEBOOK, NBSPHINX if "nbsphinx" in text else MYST_NOTEBOOK)]
    formats += [(TEXT, RESTRUCTURED_TEXT)] * text_is_source
    return SourceFolder(
        "Sphinx",
        place + "conf.py",
        root=place,
        url_style="directory" if _builds_folders(read, place) else "html",
        renames=((r"(^|/)(?-i:index)$", r"\1"),),
        formats=tuple((by_suffix.media_type, as_read.media_type) for by_suffix, as_read in formats),
        around=_around(keys),
        exclude=(
            r"(^|/)(_build|_templates|_themes|_static)/",
            *(() if text_is_source else (r"(?<!\.rst)\.txt$",)),
            *(f"^{glob_in_folders(pattern)}(?:/|$)" for pattern in excluded),  # as sphinx.util.matching,
        ),
    )


def _around(keys: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return the text before and after each page, which defines |version| and |release|."""
    texts = {name: value for name, value in keys.items() if isinstance(value, str) and value.strip()}
    values = [f".. |{name}| replace:: {texts[name]}" for name in ("version", "release") if name in texts]
    after = "\n".join([texts.get("rst_epilog", ""), *values]).strip()
    before = texts.get("rst_prolog", "")
    return ((RESTRUCTURED_TEXT.media_type, before, after),) if before or after else ()


def _builds_folders(read: Read, place: str) -> bool:
    """Return whether the Read the Docs configuration selects the dirhtml builder; no other file declares it."""
    files = [first_file(read, above, ".readthedocs.yaml", ".readthedocs.yml") for above in upwards(place)]
    return any(file and re.search(_BUILDS_FOLDERS, file[1], re.MULTILINE) for file in files)
