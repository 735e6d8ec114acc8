"""Inserts the files that a source includes into its text, as its generator does.

Otherwise a page would lack its code, and sentences the words of their links. Nothing is read outside the folder, or the
repository or unpacked release that it belongs to. The supported forms are in includes.yaml.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from posixpath import normpath
from textwrap import dedent, indent

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from pipelines.indexing.folders.jekyll import JekyllSite
from pipelines.indexing.folders.labels import Labels
from pipelines.indexing.folders.shortcodes import LONGEST, with_shortcodes
from pipelines.indexing.folders.titles import title_of, with_titles
from pipelines.indexing.reading.formats import (
    ASCIIDOC,
    MARKDOWN,
    RESTRUCTURED_TEXT,
    SOURCE_TEXTS,
    TEXT,
    format_of_name,
)
from pipelines.indexing.reading.formats.components import shown_words
from pipelines.indexing.reading.verbatim import CodePlaces, replace_outside_code
from pipelines.page.markdown import fence
from pipelines.text.phrases import read_table

TEXTS = (*SOURCE_TEXTS, TEXT)
# Limits: the bytes of all files that a page includes, the depth of nested includes, the parts of each file. Searching
# for a file counts as this many bytes: 10,000 searches for missing files took 1.4 s.
MOST_BYTES, DEPTH, MOST_PARTS, SOUGHT_BYTES = 4_000_000, 5, 50, 400
_TABLE = read_table(__name__)
_BLOCKS = frozenset(("component", "block"))  # groups of forms that a listing shows as examples
_IMPORTED = {"component": "file", "listing": "code"}
_IN_NUMBERS = str.maketrans({"L": None, ";": ","})  # `#L1-L3`, `1;3`
_FORMS = "|".join(re.sub(r"\(\?P([<=]\w+)", rf"(?P\1_{n}", form) for n, form in enumerate(_TABLE["forms"]))
_LEVEL = re.compile(r"^=+(?=[ ]\S)", re.MULTILINE)  # of a heading in AsciiDoc
_PLACE = re.compile(rf"^(?P<indent>[ \t]*)(?:{_FORMS})[ \t\r]*$", re.MULTILINE)


class Includes:
    """Fills in the includes of a folder's files. `pages` are the files that include others and change with them.

    `sources` lists the folder's files, whose labels others may refer to. `jekyll` is the configuration of a Jekyll site
    and the folder of its pages.
    """

    def __init__(
        self,
        system: FileSystem,
        root: str,
        sources: Callable[[], Iterable[str]] = tuple,
        jekyll: tuple[str, str] | None = None,
    ) -> None:
        self._system, self._local, self.pages = system, isinstance(system, LocalFileSystem), set[str]()
        self._titles: dict[tuple[str, str], str] = {}
        self._templates: dict[tuple[str, str], str] = {}
        self._labels = Labels(sources, self._source)
        top = _project(Path(root)) if self._local else root
        self._site = JekyllSite(self._source(jekyll[0]), jekyll[1], self._site_text, self._names) if jekyll else None
        self._top = (os.path.realpath(top) if self._local else top).rstrip("/") + "/"

    def __call__(self, path: str, body: bytes) -> bytes:
        """Return a file's content with its includes filled in.

        Includes that can't or may not be read are removed, unless they have words for readers.
        """
        text, self._left = body.decode("utf-8", "surrogateescape"), MOST_BYTES
        filled = self._published(path, text)
        if format_of_name(path) not in SOURCE_TEXTS:
            return body if filled == text else filled.encode("utf-8", "surrogateescape")
        filled = with_shortcodes(path, filled, self._template)
        filled = with_titles(path, self._fill(filled, (path,)), self._title, self._labels.title)
        if filled == text:
            return body
        self.pages.add(path)
        return filled.encode("utf-8", "surrogateescape")

    def _published(self, path: str, text: str) -> str:
        """Return the text of a file as Jekyll publishes it."""
        if self._site is None or not self._site.renders(path, text):
            return text
        self.pages.add(path)  # it changes with the site's configuration, data and includes
        return self._site(path, text)

    def _fill(self, text: str, files: tuple[str, ...]) -> str:
        """Return the text of the last of `files`, each of which is included by the one before it."""
        done, at = list[str](), 0
        places, entry = list(_places(text)), format_of_name(files[0]) or MARKDOWN
        code = CodePlaces(text if places else "", entry, spans=False)
        for place, said in places:
            in_code = place.start() in code
            if not (in_code and (said.keys() & _BLOCKS or entry is RESTRUCTURED_TEXT)):
                done += text[at : place.start()], self._included(place, said, files, in_code)
                at = place.end()
        return "".join([*done, text[at:]])

    def _included(self, place: re.Match[str], said: dict[str, str], files: tuple[str, ...], in_code: bool) -> str:
        names = said.get("code") or said["file"]
        parts = [self._part(name, said, files, in_code) for name in map(str.strip, names.split("\n")) if name]
        text = "\n".join(filter(None, parts))
        if text and not in_code and format_of_name(files[0]) is RESTRUCTURED_TEXT:
            text = f"\n{text}\n"  # docutils ends the surrounding paragraphs
        if text:
            return indent(text, place["indent"])
        # Code shows the include as an example, which AsciiDoc would escape; its reader extracts the words of a template
        # that can't be read.
        is_example = in_code and format_of_name(files[0]) is not ASCIIDOC
        return place[0] if is_example or shown_words(said.get("rest", "")) else ""

    def _part(self, name: str, said: dict[str, str], files: tuple[str, ...], in_code: bool) -> str:
        name, colon, part = re.sub(_TABLE["families"], r"\1/\2s/", name.removeprefix("~/")).partition(":")
        path, text = self._read(name, files[-1])
        if not text:
            return ""
        entry, suffix = format_of_name(path), PurePosixPath(path).suffix[1:].lower()
        text = dedent("\n".join(_choose(text.splitlines(), colon + part or said.get("rest", "")))).strip("\n")
        # the block around it defines its type
        is_listed = format_of_name(files[0]) is ASCIIDOC and entry is not ASCIIDOC
        if in_code or is_listed or path in files or len(files) > DEPTH or not text.strip():
            return text if in_code or is_listed else ""
        if (entry or suffix in _TABLE["prose"]) and "code" not in said and not _option("literal", said.get("rest", "")):
            text = self._fill(text, (*files, path)) if entry in (*TEXTS, None) else ""
            return _deepened(text, int(_option("deeper", said.get("rest", "")) or 0))
        language = _TABLE["languages"].get(suffix, suffix)
        if format_of_name(files[0]) is RESTRUCTURED_TEXT:
            return f".. code-block:: {language}\n\n{indent(text, '   ')}\n"
        return fence(text, language)

    def _read(self, name: str, beside: str) -> tuple[str, str]:
        """Return path and text of a file named relative to another one or to a folder above that; "" if none."""
        self._left -= SOUGHT_BYTES
        for place in PurePosixPath(beside).parents if len(name) < 256 and self._left > 0 else ():
            try:
                path = normpath(f"{place}/{name}")
                path = os.path.realpath(path) if self._local else path
                info = self._system.get_file_info(path) if self._may_be_read(path) else None
                if info and info.type == FileType.File and info.size <= self._left:
                    self._left -= info.size
                    with self._system.open_input_stream(path, compression=None) as file:
                        return path, file.read(info.size).decode("utf-8-sig", "replace")
            except (OSError, ValueError) as error:
                if not self._local and isinstance(error, OSError):
                    raise
        return "", ""

    def _title(self, name: str, beside: str) -> str:
        """Return the title of the file with this name, which is looked up once per folder."""
        key = (name, str(PurePosixPath(beside).parent))
        if key not in self._titles:
            path, text = self._read(name, beside)
            entry = format_of_name(path)
            self._titles[key] = title_of(text, entry) if entry else ""
        return self._titles[key]

    def _source(self, path: str) -> str:
        """Return the text of one of the folder's files; "" if it can't be read."""
        try:
            with self._system.open_input_stream(path, compression=None) as file:
                return str(file.read().decode("utf-8-sig", "replace"))
        except OSError:
            return ""  # reading it as a page says so

    def _template(self, name: str, beside: str) -> str:
        """Return the text of the template with this name, which is looked up once per folder."""
        key = (name, str(PurePosixPath(beside).parent))
        if key not in self._templates:
            text = self._read(name, beside)[1]
            self._templates[key] = text if len(text) <= LONGEST else ""
        return self._templates[key]

    def _site_text(self, name: str, beside: str) -> str:
        """Return the text of a site's file, which does not count for the page that is being read."""
        left, self._left = self._left, MOST_BYTES
        text = self._read(name, beside)[1]
        self._left = left
        return text

    def _names(self, folder: str) -> Iterable[str]:
        """Return the paths of the files below a folder, relative to it."""
        try:
            infos = self._system.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True))
        except (OSError, ValueError):
            return []
        return [info.path.removeprefix(f"{folder}/") for info in infos if info.type == FileType.File]

    def _may_be_read(self, path: str) -> bool:
        *folders, name = path.removeprefix(self._top).split("/")
        hidden = any(folder.startswith(".") for folder in folders)
        return path.startswith(self._top) and not hidden and (name[:1] != "." or format_of_name(name) in TEXTS)


def _project(root: Path) -> str:
    """Return the repository of a folder, or the unpacked release; itself if it belongs to none.

    A home folder is no release, although tools leave their files there.
    """
    places, home = [root, *root.parents], Path(os.path.expanduser("~"))  # noqa: PTH111 (Path.home fails without one)
    releases = [place for place in places if place not in (home, *home.parents)]
    repositories = (place for place in places if (place / ".git").exists())
    unpacked = (place for place in releases if any((place / name).is_file() for name in _TABLE["releases"]))
    return str(next(chain(repositories, unpacked), root))


def _places(text: str) -> Iterator[tuple[re.Match[str], dict[str, str]]]:
    """Yield includes in order, with the groups of their form; a component only if it is imported."""
    found = re.findall(_TABLE["imports"], text, re.MULTILINE)
    imported = {name: re.sub(r"\\(.)", r"\1", path) for name, path in found}  # a JavaScript string may escape signs
    for place in _PLACE.finditer(text):
        said = {re.sub(r"_\d+$", "", name): value for name, value in place.groupdict().items() if value}
        said |= {how: imported.get(said[name], "") for name, how in _IMPORTED.items() if name in said}
        if said.get("file") or said.get("code"):
            yield place, said


def _choose(lines: Sequence[str], said: str) -> list[str]:
    """Return the lines of the selected part, without the marks of parts."""
    if tags := _option("tags", said):
        return list(_tagged(lines, re.split("[;,]", tags)))
    begins, ends = ([_option(name, said)] for name in ("after", "before"))
    if section := _option("section", said):
        begins, ends = ([mark.format(section) for mark in _TABLE[name]] for name in ("begins", "ends"))
    start = next((n for n, line in enumerate(lines, 1) if _has(line, begins)), len(lines)) if any(begins) else 0
    end = next((n for n, line in enumerate(lines) if n >= start and _has(line, ends)), None) if any(ends) else None
    chosen = lines[start:end]
    if numbers := _option("lines", said).translate(_IN_NUMBERS).replace("..", "-"):
        chosen = [line for part in numbers.split(",")[:MOST_PARTS] for line in lines[_range(part)]]
    return [line for line in chosen if not re.search(_TABLE["marks"], line)]


def _tagged(lines: Iterable[str], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines within the named tags of AsciiDoc: `a`, `*` for any, `**` for all lines, `!a` for all others."""
    names = [name.strip() for name in names]
    without = {name[1:] for name in names if name.startswith("!")}
    all_lines = "**" in names or len(without) == len(names)
    tags: list[str] = []
    for line in lines:
        mark = re.search(r"\b(tag|end)::([\w-]+)\[\]", line)
        if mark and mark[1] == "tag":
            tags.append(mark[2])
        elif mark:
            tags = [tag for tag in tags if tag != mark[2]]
        else:
            around = {*tags, "*"} if tags else set[str]()
            if (all_lines or not around.isdisjoint(names)) and around.isdisjoint(without):
                yield line


def _deepened(text: str, levels: int) -> str:
    """Return AsciiDoc, with the files that it includes, with all headings moved down."""
    return replace_outside_code(_LEVEL, lambda signs: signs[0] + "=" * levels, text, ASCIIDOC) if levels else text


def _option(name: str, said: str) -> str:
    found = re.search(_TABLE[name], said, re.MULTILINE)
    return next(filter(None, found.groups()), "").strip() if found else ""


def _has(line: str, marks: Sequence[str]) -> bool:
    return any(re.search(rf"{re.escape(mark)}(?![\w-])", line) for mark in marks)


def _range(part: str) -> slice:
    """Return the slice for `3`, `3-5`, `3:5`, `3-` or `:5`, which count from 1."""
    first, dash, last = re.findall(r"^\s*(\d{0,7})\s*([:-]?)\s*(\d{0,7})", part)[0]
    start = max(int(first or 1) - 1, 0)
    return slice(start, int(last) if last else None if dash else start + 1)
