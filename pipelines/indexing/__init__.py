"""Indexing: pages become an index.

`reindex` does all of it: crawl or read, cut, embed, store (`building`, a Ray Data chain), publish. `read_page` and
`Chunker` are its first two steps, on one page. Names are loaded on first use, so a process that only reads pages needs
no crawler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.indexing.collection import Collection
    from pipelines.indexing.crawling.crawl import Site
    from pipelines.indexing.folders.folder import Folder
    from pipelines.indexing.reading.read import read_page
    from pipelines.indexing.run import reindex
    from pipelines.indexing.settings import ReindexOptions
    from pipelines.page.cut.chunker import Chunker

_HOMES = {
    "Chunker": "pipelines.page.cut.chunker",
    "Collection": "pipelines.indexing.collection",
    "Folder": "pipelines.indexing.folders.folder",
    "ReindexOptions": "pipelines.indexing.settings",
    "Site": "pipelines.indexing.crawling.crawl",
    "read_page": "pipelines.indexing.reading.read",
    "reindex": "pipelines.indexing.run",
}


def __getattr__(name: str) -> Any:
    """Load the module that has `name`."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
