"""Pages as a run finds them and as they are stored: what crawlers and folders tell the store.

Knows neither of them.
"""

from dataclasses import dataclass
from typing import Literal

PageState = Literal["ok", "failed", "gone", "skipped", "redirect", "duplicate"]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The state of a page in one run, as the crawler or the folder reader found it.

    `body` None with state "ok" means unchanged (304, or not asked for again): the stored body stays. `links` are the
    absolute URLs that the page links to, `canonical` its `rel=canonical` if it names another URL, `error` why the page
    is not "ok". `stamp` tells whether the file that it was read from has changed since (None: no file, or a new one).
    """

    url: str
    state: PageState
    http_status: int | None = None
    etag: str | None = None
    body: bytes | None = None
    content_type: str = "text/html"
    charset: str | None = None
    links: tuple[str, ...] = ()
    canonical: str | None = None
    error: str | None = None
    stamp: str | None = None


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A URL as it is stored. `etag` is None unless the stored body may be revalidated with it.

    `fetched` means that the run which asks, or a killed one that it continues, has stored the body.
    """

    url: str
    state: PageState
    etag: str | None
    content_hash: str | None
    links: tuple[str, ...]
    fetched: bool = False
