"""Fumadocs: a `source.config`, and loaders that define the path under which each folder is published."""

import re
from posixpath import basename, join, normpath

from pipelines.indexing.reading.formats import MARKDOWN, MDX
from pipelines.indexing.reading.locales import Renames
from pipelines.indexing.reading.sources import Read, SourceFolder, first_file

_CONFIGS = ("source.config.ts", "source.config.mts", "source.config.js", "source.config.mjs")
_LOADERS = ("lib/source.ts", "lib/source/index.ts", "lib/source.tsx", "app/source.ts", "lib/geistdocs/source.ts")
_LANGUAGES = ("lib/i18n.ts", "lib/i18n.tsx", "app/i18n.ts", "lib/geistdocs/i18n.ts")
_DEFAULT_LANGUAGE, _HIDES = (rf"\b{key}\s*:\s*['\"`]([\w-]+)" for key in ("defaultLanguage", "hideLocale"))
_NAME = "((?!js)[a-z]{2}(?:-[A-Za-z]{2,4})?)"
_FOLDER, _BASE = r"\bdir\s*:\s*['\"`]([^'\"`]+)", r"\bbaseUrl\s*:\s*['\"`]([^'\"`]*)"
_DEFAULT = "content/docs"
# Folders in parentheses are not part of URLs.
_RENAMES = ((r"\([^()/]*\)/", ""), (r"(^|/)index$", r"\1"))


def sources(read: Read, place: str) -> SourceFolder | None:
    """Return the folders published by a configuration in `place`, or None."""
    config = first_file(read, place, *_CONFIGS)
    if config is None:
        return None
    loader = first_file(read, place, *_LOADERS) or first_file(read, f"{place}src/", *_LOADERS)
    bases = [base.strip("/") for base in re.findall(_BASE, loader[1] if loader else "")]
    folders = [normpath(folder) for folder in re.findall(_FOLDER, config[1])] or [_DEFAULT]
    routes = []
    for folder in folders:
        own = [base for base in bases if basename(base) == basename(folder)] or (bases if len(folders) == 1 else [])
        routes.append((f"{folder}/", f"{(own or [basename(folder)])[0]}/".lstrip("/")))
    root = normpath(join(place, ".")) + "/"
    languages = first_file(read, place, *_LANGUAGES) or first_file(read, f"{place}src/", *_LANGUAGES)
    formats = ((MARKDOWN.media_type, MDX.media_type),)
    return SourceFolder(
        "Fumadocs", config[0], root, "bare", formats, renames=_RENAMES, routes=tuple(sorted(routes)[::-1]),
        moves=_moves(languages[1]) if languages else (),
    )  # fmt: skip


def _moves(text: str) -> Renames:
    """Return where the pages of each language go: `page.fr` to `fr/page`, except for a hidden language."""
    default, hides = re.search(_DEFAULT_LANGUAGE, text), re.search(_HIDES, text)
    own, hidden = default[1] if default else "en", hides[1] if hides else "never"
    named = {own, *re.findall(rf"['\"`]{_NAME}['\"`]", text)}
    language = f"({'|'.join(sorted(named))})" if len(named) > 1 else _NAME  # the names may be in another file
    page = r"\A(.*?)(?:(?<![^/])index)?\."
    if hidden == "always":
        return ((rf"{page}{language}\Z", r"\1"),)
    if hidden == "default-locale":
        return ((rf"{page}({own})\Z", r"\1"), (rf"{page}{language}\Z", r"\2/\1"))
    return ((rf"\A(?!.*\.{language}\Z)", f"{own}/"), (rf"{page}{language}\Z", r"\2/\1"))
