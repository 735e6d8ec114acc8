"""The other way in: files of a folder, glob or bucket that stand for pages under a base URL.

A file's URL is the base URL and its path below the root, unchanged: what a mirror such as wget's keeps. Turns
files into FetchedPages; listing and reading them is left to the caller. Knows no Ray and no database.
"""

import glob
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from pipelines.indexing.read import page_canonical
from pipelines.records import FetchedPage, Page, content_hash

CONTENT_TYPES = {
    "html": "text/html",
    "htm": "text/html",
    "xhtml": "application/xhtml+xml",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
}


class NoSuchFolder(ValueError):
    """A path that is not there, or matches no file that can be read."""


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """Files under `path` (a folder, a glob or a bucket URL) and the URL that their root stands for."""

    path: str
    base_url: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.scheme == "file"):
            raise ValueError(f"base URL {self.base_url!r} must begin with http://, https:// or file://")
        if parts.query or parts.fragment:
            raise ValueError(f"base URL {self.base_url!r} must have no query and no fragment")
        if not self.base_url.endswith("/"):
            object.__setattr__(self, "base_url", self.base_url + "/")

    @property
    def root(self) -> str:
        """What comes off the front of a file's path: the folder, or a glob's part before its first wildcard."""
        if "://" in self.path:
            return self.path.split("://", 1)[1].rstrip("/") + "/"
        fixed = re.split(r"[*?\[]", self.path, maxsplit=1)[0]
        folder = Path(fixed) if fixed == self.path and Path(fixed).is_dir() else Path(fixed).parent
        if fixed != self.path and fixed.endswith("/"):
            folder = Path(fixed)
        return str(folder.absolute()) + "/"

    def paths(self) -> list[str]:
        """What to read. Raises NoSuchFolder when there is nothing."""
        if "://" in self.path:
            return [self.path]
        if glob.has_magic(self.path) and not Path(self.path).exists():
            matches = glob.glob(self.path, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
            found = [path for path in matches if _extension(path) in CONTENT_TYPES]
        else:
            found = [self.path] if Path(self.path).exists() else []
        if not found:
            raise NoSuchFolder(f"path {self.path!r} does not exist or matches no file ({', '.join(CONTENT_TYPES)})")
        return [str(Path(path).absolute()) for path in found]

    def url_of(self, path: str) -> str:
        """The URL that the file at `path` stands for. Its characters are quoted where a URL needs it."""
        return self.base_url + quote(path.removeprefix(self.root).lstrip("/"), safe="/~!$&'()*+,;=:@-._")


def read_file(url: str, path: str, body: bytes, known_hash: str | None) -> FetchedPage:
    """The page that a file is; a body whose content hash is still `known_hash`, the stored one, is left out."""
    content_type = CONTENT_TYPES.get(_extension(path), "text/plain")
    if content_hash(body, content_type, None) == known_hash:
        return FetchedPage(url, "ok", content_type=content_type)
    page = Page(url, body, content_type)
    return FetchedPage(url, "ok", body=body, content_type=content_type, canonical=page_canonical(page))


def _extension(path: str) -> str:
    return PurePosixPath(path).suffix.lower().lstrip(".")
