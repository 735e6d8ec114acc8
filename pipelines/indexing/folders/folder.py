"""Treats the files of a folder, glob or bucket as pages under a base URL.

The URL of a file is the base URL plus its path below the root: either unchanged, as in a mirror made by wget, or as the
site's generator publishes it. The module turns files into FetchedPages; the caller reads them. It knows no Ray and no
database.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args
from urllib.parse import quote, unquote, urljoin, urlsplit

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem
from pydantic import AfterValidator, BaseModel

from pipelines.fetched import FetchedPage
from pipelines.indexing.chunking.url_rules import UrlPattern
from pipelines.indexing.folders.html_sources import html_page, is_html_page
from pipelines.indexing.folders.link_style import style_of_links
from pipelines.indexing.folders.links import lead_links
from pipelines.indexing.folders.page_urls import published_path
from pipelines.indexing.folders.published import PublishedUrls, match_files
from pipelines.indexing.reading.formats import FORMATS, HTML, MARKDOWN, SOURCE_TEXTS, SOURCES, TEXT, format_of_name
from pipelines.indexing.reading.front_matter import front_matter
from pipelines.indexing.reading.generators import GENERATORS
from pipelines.indexing.reading.links import page_pointers
from pipelines.indexing.reading.sources import Read, SourceFolder, UrlStyle, upwards
from pipelines.records import Page, content_hash
from pipelines.text.counts import counted
from pipelines.text.phrases import read_table

# Files that generators put next to their pages: copies of source files, assets.
COPIES = tuple(f"/{folder}/" for generator in GENERATORS for folder in generator.copies.split())
ChosenStyle = Literal["auto", "keep", "html", "directory", "bare"]  # auto, or a UrlStyle
URL_STYLES = get_args(ChosenStyle)
_SITES = ("docs/", "website/", "site/", "doc/")  # folders of a checkout that hold its site
_HIDDEN = re.compile(r"/(?:\.|(?:node_modules|bower_components|site-packages)/)")  # and what package managers install
_FILES = "http://folder.invalid"  # stands for the file system while links between files are resolved
UNKNOWN = read_table(__name__)["unknown"]  # configurations of generators whose URLs are not known, with their names
_MOST_READ = 100  # files whose links are read to find out how URLs end
_MAX_CONFIG = 1_000_000  # bytes of a generator's configuration; the longest of many has 50,000


class NoSuchFolder(ValueError):
    """A path does not exist, or no file under it has a supported format. `key` is the wrong setting."""

    key = "path"


class Listing(NamedTuple):
    """The files to read in a folder, and the numbers of other files.

    `skipped` counts files in other formats by suffix (`.png`). `excluded` counts files that are excluded, or hidden by
    another file with the same URL. `infos` are the file system's records of the files to read.
    """

    system: FileSystem
    paths: list[str]
    skipped: dict[str, int]
    excluded: int = 0
    infos: Mapping[str, FileInfo] = {}


def _check_base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.scheme == "file"):
        raise ValueError(f"base URL {url!r} must begin with http://, https:// or file://")
    if parts.query or parts.fragment:
        raise ValueError(f"base URL {url!r} must have no query and no fragment")
    return url if url.endswith("/") else f"{url}/"


class Folder(BaseModel, extra="forbid", frozen=True):
    """The files under `path` (a folder, a glob or a bucket URL), and the URL of their root.

    The URL of a file must match one of the regular expressions `include` (if there are any) and none of `exclude`.
    `url_style` says how the URLs of Markdown, reStructuredText and notebooks end: "keep" like the file, "html",
    "directory" (`guide/`) or "bare" (`guide`); "auto" follows the sources that `recognised` finds. `sitemap` is the
    file or URL of a list of the site's URLs, in which the files' URLs are looked up. A site at a private address is
    only fetched with `allow_private`.
    """

    path: str
    base_url: Annotated[str, AfterValidator(_check_base_url)]
    include: tuple[UrlPattern, ...] = ()
    exclude: tuple[UrlPattern, ...] = COPIES
    url_style: Literal["auto", UrlStyle] = "auto"
    sitemap: str = ""
    allow_private: bool = False

    def recognised(self) -> "FolderSettings":
        """Return these settings with the sources whose configuration is in the folder or above it, if there is one.

        Without a configuration, the links between the pages tell how their URLs end. Sources whose folder does not
        exist yet because a build creates it say nothing about the present files.
        """
        settings = FolderSettings(**self.model_dump())
        if self.url_style == "keep":
            return settings
        try:
            system = FileSystem.from_uri(self.path)[0] if "://" in self.path else LocalFileSystem()
            sources = _find_sources(lambda path: _read_text(system, path), settings.root)
            made = sources and system.get_file_info(sources.root.rstrip("/")).type == FileType.Directory
            return settings.model_copy(update={"sources": sources if made else settings._linked_sources(system)})
        except (OSError, ValueError):
            return settings  # listing the folder will show the problem


class FolderSettings(Folder, frozen=True, arbitrary_types_allowed=True):
    """A folder with its sources, if they are known, and the URLs that its site lists for its files."""

    sources: SourceFolder | None = None
    published: PublishedUrls | None = None

    @cached_property
    def root(self) -> str:
        """The part of a file's path that `base_url` replaces: the folder, or a glob's folder before its wildcards."""
        if "://" in self.path:
            return str(FileSystem.from_uri(self.path)[1]).rstrip("/") + "/"
        fixed = self.path if Path(self.path).exists() else re.split(r"[*?\[]", self.path, maxsplit=1)[0]
        folder = Path(fixed) if Path(fixed).is_dir() and fixed in (self.path, f"{Path(fixed)}/") else Path(fixed).parent
        return str(folder.absolute()) + "/"

    def files(self) -> Listing:
        """List all readable files, except hidden ones (.name) and files of installed packages.

        Ray Data's own listing would leave out every name that begins with an underscore, such as `_modules/`. Raises
        NoSuchFolder if there is no file.
        """
        system, found = self._find()
        shown = [path for path in found if not _HIDDEN.search(f"/{path.removeprefix(self.root)}")]
        known = [path for path in shown if format_of_name(path)]
        skipped = Counter(Path(path).suffix.lower() or "without suffix" for path in set(shown) - set(known))
        wanted = self._one_for_each_url(path for path in known if self._includes(path))
        if known and not wanted:
            raise NoSuchFolder(
                f"no file under path {self.path!r} is included: include and exclude allow none of "
                f"{counted(len(known), 'URL')}, such as {self.url_of(known[0])!r}"
            )
        if not wanted:
            raise NoSuchFolder(self._describe_absence())
        infos = {path: found[path] for path in wanted}
        return Listing(system, wanted, dict(skipped.most_common()), len(known) - len(wanted), infos)

    def _describe_absence(self) -> str:
        """Return why the path has no file to read."""
        is_local = "://" not in self.path and not glob.has_magic(self.path)
        if is_local and not Path(self.path).exists():
            return f"path {self.path!r} does not exist: check its spelling"
        suffixes = ", ".join(suffix for entry in FORMATS for suffix in entry.suffixes)
        lacks = "contains no file to read" if is_local else "does not exist or matches no file to read"
        return f"path {self.path!r} {lacks}: files end with {suffixes}"

    def _linked_sources(self, system: FileSystem) -> SourceFolder | None:
        """Return the folder as sources of an unknown generator whose URLs end like the links between its pages."""
        if self.url_style != "auto":
            return None
        paths = self.files().paths
        sample = paths[:: -(-len(paths) // _MOST_READ)]
        bodies = ((_read_text(system, path) or "").encode() for path in sample if format_of_name(path) in SOURCES)
        style = style_of_links(bodies, [path.removeprefix(self.root) for path in paths], self.base_url)
        return SourceFolder("", "", self.root, style) if style else None

    def _find(self) -> tuple[FileSystem, dict[str, FileInfo]]:
        if "://" not in self.path and glob.has_magic(self.path) and not Path(self.path).exists():
            matches = glob.glob(self.path, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
            infos = LocalFileSystem().get_file_info([str(Path(path).absolute()) for path in matches])
            return LocalFileSystem(), _files_of(infos)
        try:
            where = self.path if "://" in self.path else Path(self.path).absolute().as_uri()
            system, root = FileSystem.from_uri(where)
            info = system.get_file_info(root)
            if info.type in (FileType.File, FileType.NotFound):
                return system, _files_of([info])
            local = isinstance(system, LocalFileSystem)
            infos = system.get_file_info(_files_below(root) if local else FileSelector(root, recursive=True))
        except (OSError, ValueError) as error:
            raise NoSuchFolder(f"path {self.path!r} can't be read: {error}") from error
        return system, _files_of(infos)

    def _includes(self, path: str) -> bool:
        if self.sources and not self.sources.publishes(path):
            return False
        url = self.url_of(path)
        included = not self.include or any(re.search(pattern, url) for pattern in self.include)
        return included and not any(re.search(pattern, url) for pattern in self.exclude)

    def _one_for_each_url(self, paths: Iterable[str]) -> list[str]:
        """Return the paths with one file per URL: index.md takes precedence over README.md."""
        by_url = {self.url_of(path): path for path in sorted(paths, key=lambda path: ("/index." in path.lower(), path))}
        return sorted(by_url.values())

    def url_of(self, path: str, body: bytes = b"") -> str:
        """Return the URL of the file at `path`, quoted where a URL requires it.

        `body` is needed if the page's front matter may define the URL.
        """
        if self.published and path in self.published.urls:
            return self.published.urls[path]
        sources, inner = self.sources, path.removeprefix(self.root).lstrip("/")
        style = self._style()
        if sources is None or not path.startswith(sources.root):
            return self.base_url + _quote(published_path(inner, style))
        published = published_path(path.removeprefix(sources.root), style, sources, body)
        part = self._published_part(sources)
        if published.startswith(part):
            return self.base_url + _quote(published[len(part) :])
        return urljoin(self.base_url, "../" * part.count("/") + _quote(published))

    def _style(self) -> UrlStyle:
        if self.url_style != "auto":
            return self.url_style
        return self.sources.url_style if self.sources else "keep"

    def matched(self, system: FileSystem, paths: Sequence[str], urls: Sequence[str]) -> "FolderSettings":
        """Return these settings with the URLs from the site's `urls` that belong to the files at `paths`."""
        inner = {path: path.removeprefix(self.root) for path in paths}

        def body(path: str) -> bytes:
            return (_read_text(system, path if path in inner else self.root + path) or "").encode()

        named_within = self.sources is not None and self.sources.named_within
        assumed = {path: self.url_of(path, body(path) if named_within else b"") for path in paths}
        found = match_files(assumed, inner, self.base_url, urls, body)
        return self.model_copy(update={"published": PublishedUrls(found, len(urls))})

    def unknown_generator(self) -> str:
        """Return the name of the folder's generator if its configuration exists but its URLs are unsupported."""
        system = FileSystem.from_uri(self.path)[0] if "://" in self.path else LocalFileSystem()
        places = [f"{above}{name}" for above in list(upwards(self.root))[:2] for name in UNKNOWN]
        return next((UNKNOWN[Path(place).name] for place in places if system.get_file_info(place).is_file), "")

    def _published_part(self, sources: SourceFolder) -> str:
        """Return the site's path for `base_url`: "" unless this folder is only a part of the pages."""
        if sources.root.startswith(self.root):
            return ""
        inner = self.root.removeprefix(sources.root)
        index = published_path(f"{inner}index.{MARKDOWN.suffixes[0]}", "bare", sources)
        return f"{index.rstrip('/')}/".lstrip("/")

    def is_page(self, path: str, body: bytes) -> bool:
        """Return whether the generator publishes a page from a file: it is no template and no draft."""
        if self.sources is None:
            return True
        if format_of_name(path) is HTML and not is_html_page(body, self.sources.renders_html):
            return False
        fields = front_matter(body) if self.sources.named_within else {}
        unwanted = (fields.get(name) for name in ("published", "render", self.sources.whole))
        return fields.get("draft") is not True and not any(value is False for value in unwanted)

    def media_type_of(self, path: str) -> str:
        """Return the media type with which the file at `path` is read."""
        media_type = (format_of_name(path) or TEXT).media_type
        return dict(self.sources.formats).get(media_type, media_type) if self.sources else media_type

    def page(self, path: str, url: str, body: bytes, known_hash: str | None, stamp: str | None = None) -> FetchedPage:
        """Return a file as a page; without its body if the content hash equals the stored one, `known_hash`."""
        content_type = self.media_type_of(path)
        body = self._published_links(path, body)
        body = self.sources.whole_source(content_type, body) if self.sources else body
        body = html_page(body) if content_type == HTML.media_type and self.sources else body
        page = Page(url, body, content_type)
        links, canonical = self._pointers(path, page)
        fetched = FetchedPage(url, "ok", content_type=content_type, links=links, stamp=stamp)
        if content_hash(body, content_type, None) == known_hash:
            return fetched
        return replace(fetched, body=body, canonical=canonical)

    def _published_links(self, path: str, body: bytes) -> bytes:
        entry = format_of_name(path)
        if entry not in SOURCE_TEXTS or (self._style() == "keep" and not self.published):
            return body
        root = self.sources.root if self.sources else self.root
        return lead_links(body, _FILES + quote(path), _FILES + quote(root), partial(_published_link, self), entry)

    def _pointers(self, path: str, page: Page) -> tuple[tuple[str, ...], str | None]:
        """Return the URLs that a page links to, and its canonical URL; links to files become their published URLs."""
        place = _FILES + quote(path)
        found, canonical = page_pointers(page, place)
        links = (
            _published_link(self, url) or urljoin(page.url, url.removeprefix(_FILES)) for url in found if url != place
        )
        return tuple(dict.fromkeys(links)), canonical


@lru_cache(1 << 16)  # the pages of a site link to one another
def _published_link(settings: FolderSettings, url: str) -> str:
    """Return the URL that a link leads to, "" for a file outside the folder."""
    if not url.startswith(_FILES + "/"):
        return url
    path = unquote(url.removeprefix(_FILES))
    return settings.url_of(path) if path.startswith(settings.root) else ""


def _find_sources(read: Read, folder: str) -> SourceFolder | None:
    """Return the sources that `folder` contains or belongs to; None if no configuration defines them.

    In a checkout, the configuration may be next to it or one level below, in one of a few folders.
    """
    for place in (above + name for above in upwards(folder) for name in ("", *_SITES)):
        for generator in GENERATORS:
            sources = generator.sources(read, place) if generator.sources else None
            if sources is not None and sources.covers(folder):
                return sources
    return None


def _read_text(system: FileSystem, path: str) -> str | None:
    """Return the beginning of a file as text, None if there is no such file."""
    if system.get_file_info(path).type != FileType.File:
        return None
    with system.open_input_stream(path) as file:
        return str(file.read(_MAX_CONFIG).decode("utf-8-sig", "replace"))


def _files_below(root: str) -> list[str]:
    """Return the files below a local folder, without following links to a folder that contains the link.

    Raises ValueError for a name that is not UTF-8, because no URL and no message could contain it.
    """
    found: list[str] = []
    todo: list[tuple[str, tuple[Path, ...]]] = [(root, ())]
    while todo:
        folder, above = todo.pop()
        here = Path(folder).resolve()
        for entry in os.scandir(folder) if here not in above else ():
            if any("\ud800" <= character <= "\udfff" for character in entry.name):
                raise ValueError(f"{os.fsencode(entry.path)!r} is not UTF-8: rename it")
            is_folder = Path(entry.path).is_dir() if entry.is_symlink() else entry.is_dir()
            if is_folder:
                todo.append((entry.path, (*above, here)))
            else:
                found.append(entry.path)
    return found


def _files_of(infos: Iterable[FileInfo]) -> dict[str, FileInfo]:
    return {info.path: info for info in infos if info.type == FileType.File}


def _quote(path: str) -> str:
    return quote(path, safe="/~!$&'()*+,;=:@-._")
