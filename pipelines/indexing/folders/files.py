"""Saves the files of a folder as pages, and reads only files that may have changed.

A page keeps the stamp of its file: a hash of path, size, times and how the folder is read. If a file's stamp equals the
stored one, the file is not opened. This module knows no Ray.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyarrow.fs import FileInfo, FileSystem, LocalFileSystem

from pipelines.fetched import FetchedPage
from pipelines.files.shared_files import state_of
from pipelines.indexing.folders.folder import FolderSettings, Listing
from pipelines.indexing.folders.includes import Includes
from pipelines.records import digest
from pipelines.store import Store

# Raise it whenever the same file yields another text, URL, type, link or canonical URL; all files are then read again.
STAMPS_VERSION = 17
# A file that changed this shortly before it was checked may change again without a new time, so it gets no stamp. The
# coarsest file system clock in use is FAT's, with two seconds.
SETTLED_NS = 2_000_000_000
# Files, and their bytes, that are kept in memory and committed at once; concurrent requests to a bucket.
MOST_FILES, MOST_BYTES, READERS = 256, 64 << 20, 16


def save_files(
    folder: FolderSettings, listing: Listing, store: Store, collection: str, run: int, read_all: bool = False
) -> tuple[int, int]:
    """Commit the listed files of a folder as pages that `run` has seen; return the numbers of pages and of
    files that are no pages, such as drafts.

    `read_all` also reads files whose stamps have not changed.
    """
    sources = folder.sources
    jekyll = (sources.config, sources.root) if sources and sources.liquid else None
    includes = Includes(listing.system, folder.root, lambda: folder.files().paths, jekyll)
    stamps = make_stamps(folder, listing.system, listing.infos)
    known = {stamp: path for path, stamp in stamps.items() if stamp}
    same = store.see_files(collection, run, sorted(known)) if known and not read_all else {}
    held = {url: known[stamp] for stamp, url in same.items()}
    left_out = 0
    todo = [path for path in listing.paths if stamps.get(path) not in same]
    with ThreadPoolExecutor(READERS) as readers:
        for paths in _batches(todo, listing.infos):
            found = dict(zip(paths, readers.map(lambda path: read_file(listing.system, path), paths), strict=True))
            texts = {path: body for path, body in found.items() if isinstance(body, bytes)}
            bodies = {path: includes(path, body) for path, body in texts.items() if folder.is_page(path, body)}
            left_out += len(texts) - len(bodies)
            stamps |= dict.fromkeys(includes.pages)  # a change of the included files does not change theirs
            files = _last_of_each_url(folder, bodies, held)
            hashes = store.content_hashes(collection, list(files))
            pages = [
                folder.page(path, url, bodies[path], hashes.get(url), stamps.get(path)) for url, path in files.items()
            ]
            failed = [_failed(folder, path, error) for path, error in found.items() if isinstance(error, OSError)]
            store.save_pages(collection, run, pages + failed)
    return len(listing.paths) - left_out, left_out


def limit_files(folder: FolderSettings, listing: Listing, urls: Collection[str]) -> Listing:
    """Return the listed files that are published at `urls`."""
    named_within = folder.sources is not None and folder.sources.named_within

    def is_wanted(path: str) -> bool:
        body = read_file(listing.system, path) if named_within else None
        return folder.url_of(path, body if isinstance(body, bytes) else b"") in urls

    paths = [path for path in listing.paths if is_wanted(path)]
    return listing._replace(paths=paths, infos={path: listing.infos[path] for path in paths})


def make_stamps(folder: FolderSettings, system: FileSystem, infos: Mapping[str, FileInfo]) -> dict[str, str | None]:
    """Return the stamp of each file, None for a file that is too new to have one."""
    newest = time.time_ns() - SETTLED_NS
    how = digest(str(STAMPS_VERSION), folder.root, folder.base_url, folder.url_style, repr(folder.sources))
    local = isinstance(system, LocalFileSystem)
    named = folder.published.urls if folder.published else {}

    def listed(path: str) -> list[str]:
        return [named[path]] if path in named else []

    states = {path: _local_state(path) if local else _listed_state(info) for path, info in infos.items()}
    return {
        path: digest(how, path, repr(state), *listed(path)) if state is not None and max(state[1:]) < newest else None
        for path, state in states.items()
    }


def _local_state(path: str) -> tuple[int, ...] | None:
    """Return size, modification and change time; tools can set the modification time, but not the change time."""
    found = state_of(Path(path))
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns) if found else None


def _listed_state(info: FileInfo) -> tuple[int, ...] | None:
    """Return size and modification time, None if the file system lacks one of them."""
    size, modified = info.size, info.mtime_ns
    return None if size is None or modified is None else (size, modified)


def _batches(paths: Sequence[str], infos: Mapping[str, FileInfo]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        more = infos[path].size or 0
        if batch and (len(batch) == MOST_FILES or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += more
    if batch:
        yield batch


def read_file(system: FileSystem, path: str) -> bytes | OSError | None:
    """Return the content of a file, or the error; None if it was deleted since it was listed."""
    try:
        with system.open_input_stream(path, compression=None) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        return error


def _failed(folder: FolderSettings, path: str, error: OSError) -> FetchedPage:
    """Return the failed page of an unreadable file. Raises `error` if front matter may define the page's URL."""
    if folder.sources and folder.sources.named_within:
        raise error  # otherwise the page's present URL would count as gone
    return FetchedPage(folder.url_of(path), "failed", error=str(error))


def _last_of_each_url(folder: FolderSettings, bodies: Mapping[str, bytes], held: Mapping[str, str]) -> dict[str, str]:
    """Return by URL the last file that claims it, unless an unchanged file that has the URL comes after that.

    Several files may claim a URL in their front matter. If only changed files counted, another one would win in each
    run.
    """
    files = {folder.url_of(path, body): path for path, body in bodies.items()}
    return {url: path for url, path in files.items() if held.get(url, path) <= path}
