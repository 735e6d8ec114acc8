"""Applies robots.txt (RFC 9309): permitted URLs, the delay between requests, sitemaps.

protego parses the rules. The fetcher is only a callable here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego

from pipelines.indexing.crawling.reply import HttpReply, redirect_target
from pipelines.indexing.crawling.scope import site
from pipelines.indexing.reading.links import origin

MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
MAX_BYTES = 512 * 1024  # RFC 9309, 2.5: at least 500 kibibytes are read


Fetch = Callable[[str], Awaitable[HttpReply]]


async def fetch_file(fetch: Fetch, url: str) -> HttpReply:
    """Return the reply for `url` after redirects within its site."""
    reply = await fetch(url)
    for _ in range(MAX_REDIRECTS):
        target = redirect_target(reply)
        if target is None or site(target) != site(url):
            break
        reply = await fetch(target)
    return reply


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of one origin. `unreachable` says why everything is forbidden for now, "" if it is not."""

    parsed: Protego
    unreachable: str = ""

    def allow(self, url: str, agent: str) -> bool:
        return not self.unreachable and self.parsed.can_fetch(url, agent)


class Robots:
    """The rules of every origin of a crawl, each fetched once; `agent` is the product token they refer to."""

    def __init__(self, fetch: Fetch, user_agent: str):
        self._fetch = fetch
        self.agent = user_agent.split("/", 1)[0].strip()
        self._rules: dict[str, asyncio.Task[RobotsRules]] = {}

    async def rules(self, url: str) -> RobotsRules:
        """Return the rules for the origin of `url`."""
        base = origin(url)
        if base not in self._rules:
            self._rules[base] = asyncio.create_task(self._load(f"{base}/robots.txt"))
        return await self._rules[base]

    async def _load(self, url: str) -> RobotsRules:
        return parse_robots(await fetch_file(self._fetch, url))


def parse_robots(reply: HttpReply) -> RobotsRules:
    """Return the rules in a robots.txt reply: 5xx and no response forbid everything, 3xx and 4xx allow everything."""
    if reply.status is None:
        return RobotsRules(Protego.parse(""), f"{reply.url} could not be fetched ({reply.error})")
    if reply.status >= 500:
        return RobotsRules(Protego.parse(""), f"{reply.url} answered {reply.status}")
    text = reply.body[:MAX_BYTES].decode("utf-8", "replace") if reply.status < 300 else ""
    return RobotsRules(Protego.parse(text.removeprefix("\ufeff")))
