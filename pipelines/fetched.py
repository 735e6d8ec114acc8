"""Defines the page records that crawlers and folder readers exchange with the store.

This module knows neither of them.
"""

from dataclasses import dataclass
from typing import Literal

PageState = Literal["ok", "failed", "gone", "skipped", "redirect", "duplicate"]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The state of a page in one run, as the crawler or the folder reader found it.

    If `body` is None with state "ok", the page is unchanged (304, or not requested again) and the stored body stays.
    `links` are the absolute URLs that the page links to. `canonical` is its `rel=canonical` if that is another URL.
    `error` says why the page is not "ok". `stamp` shows whether the page's file has changed since (None: no file, or a
    new one).
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
    """A URL as it is stored. `etag` is None unless it may be used to revalidate the stored body.

    `fetched` means that this run, or a killed run that it resumes, has stored the body.
    """

    url: str
    state: PageState
    etag: str | None
    content_hash: str | None
    links: tuple[str, ...]
    fetched: bool = False
