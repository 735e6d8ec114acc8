"""Renders pages of Jekyll with their site's configuration, its data files and their front matter.

A page is rendered only if Jekyll would render it and it has a tag. Files are read only when a page asks for them. What
other pages or the build itself would tell is not known.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import PurePosixPath
from posixpath import basename
from typing import Any

import yaml

from pipelines.indexing.reading.formats import HTML, MARKDOWN, format_of_name
from pipelines.indexing.reading.front_matter import front_matter
from pipelines.indexing.reading.verbatim import replace_outside_code
from pipelines.text.counts import counted
from pipelines.text.parsing import NotParsed, parse_json, parse_yaml

# From the path of a file, relative to another file's or to a folder above that, to its text; "" if there is none.
Find = Callable[[str, str], str]

MOST_DATA = 1_000_000  # characters of a data file; YAML of this length takes about 1 s
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?:.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TAG = re.compile(r"\{[{%]")
# An empty line that a tag leaves within HTML; Markdown would take the indented lines after it for code.
_GAP = re.compile(r"(?<=>)[ \t]*\n(?:[ \t]*\n)+(?=[ \t]+<)")
# Names that only the build knows. Other names that are not set are empty.
_BUILT_SITE = (
    "pages posts documents collections categories tags static_files html_pages html_files related_posts time github "
    "theme source destination data"
)
_BUILT_PAGE = "url id date content excerpt previous next output collection dir categories tags slug ext relative_path"
_DATA_NAME = re.compile(r"[^\w\s-]+")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class JekyllSite:
    """A site whose configuration has the text `config`, with pages below `root`, which ends with a slash.

    `find` reads a file of the site; `names` lists the files in a folder and below it, relative to the folder.
    """

    def __init__(self, config: str, root: str, find: Find, names: Callable[[str], Iterable[str]]) -> None:
        self._config, self._root, self._find, self._names = config, root, find, names

    def renders(self, path: str, text: str) -> bool:
        """Return whether Jekyll renders this file, and it has a tag."""
        known = path.startswith(self._root) and format_of_name(path) in (HTML, MARKDOWN)
        return known and _TAG.search(text) is not None and _FRONT_MATTER.match(text) is not None

    def __call__(self, path: str, text: str) -> str:
        """Return the text of a file that Jekyll renders, unchanged where the result can't be known."""
        from pipelines.indexing.folders.liquid import Known, render  # takes 0.1 s, and few folders need it

        head, page = _FRONT_MATTER.match(text), self._page(path, text)
        if head is None or page.get("render_with_liquid") is False:
            return text
        values = {
            "site": Known(self._values, self._collections.union(_BUILT_SITE.split())),
            "page": Known(page, frozenset(_BUILT_PAGE.split())),
            "jekyll": Known({"environment": "production"}, frozenset({"version"})),
        }
        body = text[head.end() :].replace("\r\n", "\n")
        done = render(body, values, lambda name: self._included(name, path))
        return text if done is None else head[0] + replace_outside_code(_GAP, lambda _: "\n", done)

    @cached_property
    def _settings(self) -> Mapping[str, Any]:
        try:
            found = parse_yaml(self._config, _LOADER)
        except NotParsed:
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def _values(self) -> Mapping[str, Any]:
        """The values of `site`. Addresses are written from the site's root, which the folder's URL completes."""
        data = DataFolder(self._names(self._root + self._data), f"{self._data}/", self._data_text)
        known = {"data": data} if data else {}  # the folder may be outside the files that can be read
        return {**self._settings, **known, "url": "", "baseurl": ""}

    @property
    def _data(self) -> str:
        named = str(self._settings.get("data_dir") or "").strip("/")
        return "_data" if not named or ".." in named else named

    @cached_property
    def _collections(self) -> frozenset[str]:
        found = self._settings.get("collections")
        return frozenset(map(str, found if isinstance(found, Iterable) else ()))

    def _data_text(self, name: str) -> str:
        return self._find(name, f"{self._root}_config.yml")

    def _included(self, name: str, path: str) -> str:
        folder = str(self._settings.get("includes_dir") or "_includes").strip("/")
        return "" if ".." in name or name.startswith("/") else self._find(f"{folder}/{name}", path)

    def _page(self, path: str, text: str) -> dict[str, Any]:
        """Return the front matter of a page with the site's defaults."""
        inner = path.removeprefix(self._root)
        fields: dict[str, Any] = {"path": inner, "name": basename(inner)}
        for each in sorted(self._defaults(inner), key=lambda scoped: len(str(scoped["scope"].get("path") or ""))):
            fields |= each["values"]
        return {**fields, **front_matter(text)}

    def _defaults(self, inner: str) -> Iterator[Mapping[str, Any]]:
        found = self._settings.get("defaults")
        for each in found if isinstance(found, list) else ():
            scope, values = (each.get("scope"), each.get("values")) if isinstance(each, dict) else (None, None)
            if isinstance(scope, dict) and isinstance(values, dict) and _is_in(inner, scope):
                yield {"scope": scope, "values": values}


class DataFolder(Mapping[str, Any]):
    """The data files of a folder by their names, each parsed when it is asked for; raises NotParsed for a wrong one.

    `names` are the paths of files and `place` the folder's, from where `read` reads them.
    """

    def __init__(self, names: Iterable[str], place: str, read: Callable[[str], str]) -> None:
        self._place, self._read = place, read
        self._files: dict[str, str] = {}
        folders: dict[str, list[str]] = {}
        for name in sorted(names):
            first, slash, rest = name.partition("/")
            if slash:
                folders.setdefault(first, []).append(rest)
            elif PurePosixPath(name).suffix in _PARSERS:
                self._files.setdefault(_DATA_NAME.sub("", PurePosixPath(name).stem).replace(" ", "_"), name)
        self._values: dict[str, Any] = {
            _DATA_NAME.sub("", name): DataFolder(below, f"{place}{name}/", read) for name, below in folders.items()
        }

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            file = self._files[name]
            text = self._read(self._place + file)
            if len(text) > MOST_DATA:
                raise NotParsed(f"it has more than {counted(MOST_DATA, 'character')}")
            self._values[name] = _PARSERS[PurePosixPath(file).suffix](text)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files.keys() | self._values.keys()))

    def __len__(self) -> int:
        return len(self._files.keys() | self._values.keys())

    def __repr__(self) -> str:
        return str(list(self))


def _parse_table(delimiter: str, text: str) -> list[dict[str, Any]]:
    try:
        return list(csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter, restkey=""))
    except csv.Error as error:
        raise NotParsed(str(error)) from error


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    ".yml": partial(parse_yaml, loader=_LOADER),
    ".yaml": partial(parse_yaml, loader=_LOADER),
    ".json": parse_json,
    ".csv": partial(_parse_table, ","),
    ".tsv": partial(_parse_table, "\t"),
}


def _is_in(inner: str, scope: Mapping[str, Any]) -> bool:
    """Return whether a page is in the scope of defaults; the type of a page is the collection of its folder."""
    kind = re.match(r"(?:.*/)?_([\w-]+)/", inner)
    if scope.get("type") and scope["type"] != (kind[1] if kind else "pages"):
        return False
    place = str(scope.get("path") or "").strip("/")
    return "*" not in place and (not place or f"{inner}/".startswith(f"{place}/"))
