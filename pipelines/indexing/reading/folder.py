"""Takes the files of a folder, glob or bucket as pages under a base URL.

The URL of a file is the base URL and its path below the root, unchanged, as in a mirror made by wget. Turns files into
FetchedPages; the caller reads them. Knows no Ray and no database.
"""

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from pipelines.formats import FORMATS, TEXT, format_of_name
from pipelines.indexing.reading.links import page_canonical
from pipelines.records import FetchedPage, Page, content_hash

# Copies of its source files and assets that Sphinx puts beside its pages.
SPHINX_COPIES = ("/_sources/", "/_static/")


class NoSuchFolder(ValueError):
    """A path does not exist, or no file under it has a format that can be read."""


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The files under `path` (a folder, a glob or a bucket URL), and the URL that their root stands for.

    The URL of a file must match one of the regular expressions `include` (if there are any) and none of `exclude`.
    """

    path: str
    base_url: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = SPHINX_COPIES

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.scheme == "file"):
            raise ValueError(f"base URL {self.base_url!r} must begin with http://, https:// or file://")
        if parts.query or parts.fragment:
            raise ValueError(f"base URL {self.base_url!r} must have no query and no fragment")
        for pattern in (*self.include, *self.exclude):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"pattern {pattern!r} is not a regular expression: {error}") from error
        if not self.base_url.endswith("/"):
            object.__setattr__(self, "base_url", self.base_url + "/")

    @property
    def root(self) -> str:
        """The part of a file's path that `base_url` replaces: the folder, for a glob the one before its wildcards."""
        if "://" in self.path:
            return str(FileSystem.from_uri(self.path)[1]).rstrip("/") + "/"
        fixed = re.split(r"[*?\[]", self.path, maxsplit=1)[0]
        folder = (
            Path(fixed) if Path(fixed).is_dir() and fixed in (self.path, str(Path(fixed)) + "/") else Path(fixed).parent
        )
        return str(folder.absolute()) + "/"

    def files(self) -> tuple[FileSystem, list[str]]:
        """Return the file system and the paths of all files that can be read, except hidden ones (.name).

        Ray Data's own listing would leave out every name that begins with an underscore, such as Sphinx's `_modules/`.
        Raises NoSuchFolder if there is no file.
        """
        if "://" not in self.path and glob.has_magic(self.path) and not Path(self.path).exists():
            system: FileSystem = LocalFileSystem()
            matches = glob.glob(self.path, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
            found = [str(Path(path).absolute()) for path in matches if Path(path).is_file()]
        else:
            system, found = self._list()
        wanted = sorted(path for path in found if format_of_name(path) and self._includes(path))
        if not wanted:
            suffixes = ", ".join(suffix for entry in FORMATS for suffix in entry.suffixes)
            raise NoSuchFolder(f"path {self.path!r} does not exist or matches no file ({suffixes})")
        return system, wanted

    def _list(self) -> tuple[FileSystem, list[str]]:
        try:
            where = self.path if "://" in self.path else Path(self.path).absolute().as_uri()
            system, root = FileSystem.from_uri(where)
            kind = system.get_file_info(root).type
            if kind in (FileType.File, FileType.NotFound):
                return system, [root] if kind == FileType.File else []
            infos = system.get_file_info(FileSelector(root, recursive=True))
        except (OSError, ValueError) as error:
            raise NoSuchFolder(f"path {self.path!r} can't be read: {error}") from error
        return system, [info.path for info in infos if info.type == FileType.File]

    def _includes(self, path: str) -> bool:
        if any(part.startswith(".") for part in path.removeprefix(self.root).split("/")):
            return False
        url = self.url_of(path)
        included = not self.include or any(re.search(pattern, url) for pattern in self.include)
        return included and not any(re.search(pattern, url) for pattern in self.exclude)

    def url_of(self, path: str) -> str:
        """Return the URL that the file at `path` stands for, quoted where a URL requires it."""
        return self.base_url + quote(path.removeprefix(self.root).lstrip("/"), safe="/~!$&'()*+,;=:@-._")


def read_file(url: str, path: str, body: bytes, known_hash: str | None) -> FetchedPage:
    """Return a file as a page; without its body if the content hash is still `known_hash`, the stored one."""
    content_type = (format_of_name(path) or TEXT).media_type
    if content_hash(body, content_type, None) == known_hash:
        return FetchedPage(url, "ok", content_type=content_type)
    page = Page(url, body, content_type)
    return FetchedPage(url, "ok", body=body, content_type=content_type, canonical=page_canonical(page))
