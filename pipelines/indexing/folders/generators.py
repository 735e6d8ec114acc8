"""Recognises the generator that publishes a folder: MkDocs, Sphinx, Docusaurus or mdBook.

Reads a few keys of files that are written for other programs, and runs nothing: what a key can't be read from has its
default. Knows no URL.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from posixpath import dirname, join, normpath
from typing import Any, Literal

import yaml

from pipelines.formats import MARKDOWN, MDX, MKDOCS, MYST, NOTEBOOK, RESTRUCTURED_TEXT, SPHINX_NOTEBOOK, TEXT
from pipelines.formats import DocumentFormat as Format

UrlStyle = Literal["keep", "html", "directory", "bare"]
Read = Callable[[str], str | None]  # a path to its text, None if there is no such file

# A docs folder lies at most so deep below the file that configures its site: website/docs/en, docs/en/docs.
_LEVELS_UP = 3
_DOCUSAURUS = tuple(f"docusaurus.config.{suffix}" for suffix in ("js", "ts", "mjs", "cjs", "mts", "cts"))


@dataclass(frozen=True, slots=True)
class Generator:
    """How a generator publishes files.

    `root` is the folder whose files are its pages, with a slash at the end. `routes` are folders below it and what they
    are called in URLs; files beside them are no pages. `formats` are pairs of media types: of a file by its suffix, and
    as the generator reads it. `exclude` are regular expressions for paths below the root that become no page.
    """

    name: str
    config: str
    root: str
    url_style: UrlStyle
    indexes: tuple[str, ...] = ("index", "readme")
    formats: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()


def recognise(read: Read, folder: str) -> Generator | None:
    """Return the generator whose pages the files of `folder` are; None if no configuration says so."""
    for place in _upwards(folder):
        for recogniser in (_mkdocs, _docusaurus, _mdbook, _sphinx):
            found = recogniser(read, place)
            if found is not None and _holds(found, folder):
                return found
    return None


def _upwards(folder: str) -> Iterator[str]:
    place = folder.rstrip("/") + "/"
    for _ in range(_LEVELS_UP + 1):
        yield place
        above = dirname(place.rstrip("/"))
        if above in ("", "/", place.rstrip("/")):
            return
        place = above + "/"


def _holds(generator: Generator, folder: str) -> bool:
    """Return whether `folder` holds or lies in the pages; what the generator has built from them is not its pages."""
    folder = folder.rstrip("/") + "/"
    if generator.root.startswith(folder):
        return True
    inner = folder.removeprefix(generator.root)
    if not folder.startswith(generator.root) or any(re.search(pattern, inner) for pattern in generator.exclude):
        return False
    return not generator.routes or any(inner.startswith(place) for place, _ in generator.routes)


def _folder(place: str, name: object, default: str) -> str:
    """Return the folder `name` below `place`, with a slash at the end."""
    return normpath(join(place, name if isinstance(name, str) and name else default)).rstrip("/") + "/"


def _types(*pairs: tuple[Format, Format]) -> tuple[tuple[str, str], ...]:
    return tuple((by_suffix.media_type, as_read.media_type) for by_suffix, as_read in pairs)


# ---------------------------------------------------------------------------------------------- MkDocs


class _AnyTag(yaml.SafeLoader):
    """Loads YAML whose tags name functions of the program that it is for, as nothing."""


_AnyTag.add_multi_constructor("", lambda loader, suffix, node: None)


def _mkdocs(read: Read, place: str) -> Generator | None:
    config = next((name for name in ("mkdocs.yml", "mkdocs.yaml") if read(place + name) is not None), None)
    if config is None:
        return None
    try:
        keys = yaml.load(read(place + config) or "", _AnyTag)
    except yaml.YAMLError:
        keys = None
    keys = keys if isinstance(keys, dict) else {}
    return Generator(
        name="MkDocs",
        config=place + config,
        root=_folder(place, keys.get("docs_dir"), "docs"),
        url_style="html" if keys.get("use_directory_urls") is False else "directory",
        formats=_types((MARKDOWN, MKDOCS)),
    )


# ---------------------------------------------------------------------------------------------- Docusaurus


def _docusaurus(read: Read, place: str) -> Generator | None:
    config = next((name for name in _DOCUSAURUS if read(place + name) is not None), None)
    if config is None:
        return None
    text = re.sub(r"^\s*//[^\n]*|/\*.*?\*/", "", read(place + config) or "", flags=re.MULTILINE | re.DOTALL)
    docs = re.search(r"\bdocs\s*:\s*\{(.*?)^\s*\}", text, re.MULTILINE | re.DOTALL)
    options = docs[1] if docs else ""
    path = _text_key("path", options, "docs").strip("/") + "/"
    route = _text_key("routeBasePath", options, "docs").strip("/") + "/"
    return Generator(
        name="Docusaurus",
        config=place + config,
        root=place,
        url_style="directory" if re.search(r"\btrailingSlash\s*:\s*true\b", text) else "bare",
        formats=_types((MARKDOWN, MDX)),
        exclude=(r"(^|/)_",),
        routes=((path, route.lstrip("/")), ("blog/", "blog/"), ("src/pages/", "")),
    )


def _text_key(name: str, text: str, default: str) -> str:
    found = re.search(rf"\b{name}\s*:\s*(['\"`])(.*?)\1", text)
    return found[2] if found else default


# ---------------------------------------------------------------------------------------------- mdBook


def _mdbook(read: Read, place: str) -> Generator | None:
    text = read(place + "book.toml")
    if text is None:
        return None
    try:
        book = tomllib.loads(text).get("book", {})
    except tomllib.TOMLDecodeError:
        book = {}
    return Generator(
        name="mdBook",
        config=place + "book.toml",
        root=_folder(place, book.get("src") if isinstance(book, dict) else None, "src"),
        url_style="html",
        exclude=(r"(^|/)SUMMARY\.md$",),
    )


# ---------------------------------------------------------------------------------------------- Sphinx


def _sphinx(read: Read, place: str) -> Generator | None:
    text = read(place + "conf.py")
    if text is None or not re.search(
        r"^\s*(?:extensions|html_theme|project|source_suffix)\s*[+:=]", text, re.MULTILINE
    ):
        return None
    values = _literals(text)
    patterns = values.get("exclude_patterns")
    excluded = [name for name in patterns if isinstance(name, str)] if isinstance(patterns, list | tuple) else []
    suffixes = values.get("source_suffix", ())
    text_is_source = TEXT.suffixes[0] in str(suffixes if isinstance(suffixes, str) else list(suffixes or ()))
    notebooks = () if "nbsphinx" in text else ((NOTEBOOK, SPHINX_NOTEBOOK),)
    return Generator(
        name="Sphinx",
        config=place + "conf.py",
        root=place,
        url_style="directory" if _builds_folders(read, place) else "html",
        indexes=("index",),
        formats=_types((MARKDOWN, MYST), *notebooks, *((TEXT, RESTRUCTURED_TEXT),) * text_is_source),
        exclude=(
            r"(^|/)(_build|_templates|_themes|_static)/",
            *(() if text_is_source else (r"(?<!\.rst)\.txt$",)),
            *(f"^{_glob(pattern)}" for pattern in excluded),
        ),
    )


def _literals(text: str) -> dict[str, Any]:
    """Return the names that a Python file sets to literal values, without running it."""
    found: dict[str, Any] = {}
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return found
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = ast.literal_eval(statement.value)
            except (ValueError, TypeError, RecursionError):
                continue
    return found


def _glob(pattern: str) -> str:
    """Return a pattern of Sphinx's exclude_patterns, which may name a folder, as a regular expression."""
    return translate(pattern.rstrip("/")).removesuffix(r"\Z").removesuffix(r"\z") + "(?:/|$)"


def _builds_folders(read: Read, place: str) -> bool:
    """Return whether Read the Docs builds the folder as directories, the only place that says so in a file."""
    names = (".readthedocs.yaml", ".readthedocs.yml")
    texts = (read(above + name) for above in _upwards(place) for name in names)
    return any(re.search(r"^\s*builder:\s*[\"']?dirhtml", text or "", re.MULTILINE) for text in texts)
