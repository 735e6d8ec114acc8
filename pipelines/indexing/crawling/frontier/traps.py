"""Finds link traps: pages that link to ever new URLs of themselves, as with a session id in each link.

This module knows URLs and texts, but no network and no queue.
"""

import re
from collections import Counter
from urllib.parse import parse_qsl, urlsplit

from pipelines.indexing.reading.links import HIDDEN, origin

# Equal pages of one pattern before the others that they link to are skipped. Real folders have some: 30 versions of an
# unchanged page are 30 equal pages, but each page that they link to is also in a menu.
MOST_EQUAL = 20
MIXED = ""  # replaces the texts of a pattern whose pages are not equal
VARIES = "*"

_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\b[^\W\d_]+\b")

Pattern = tuple[str, ...]


def reduced(html: str) -> str:
    """Return the words of a page, without words that contain digits: dates, counters and session ids."""
    return " ".join(_WORD.findall(_TAG.sub(" ", HIDDEN.sub(" ", html))))


class LinkTraps:
    """Patterns of URLs that differ in one part of the path, or in their query, and whose pages are all equal.

    A pattern with more than `most` equal pages is a trap. Its URLs are skipped if a page of a trap linked to them; URLs
    from a sitemap or a real page are visited. `left` counts the skipped URLs by pattern, in readable form.
    """

    def __init__(self, most: int = MOST_EQUAL) -> None:
        self._most = most
        self._texts: dict[Pattern, str] = {}
        self._equal: Counter[Pattern] = Counter()
        self._traps: set[Pattern] = set()
        self.left: Counter[str] = Counter()

    def note(self, url: str, text: str) -> None:
        """Record that the page at `url` has `text` (see `reduced`)."""
        for pattern in _patterns(url):
            if self._texts.setdefault(pattern, text) != text or not text:
                self._texts[pattern] = MIXED
                self._traps.discard(pattern)
            else:
                self._equal[pattern] += 1
                if self._equal[pattern] > self._most:
                    self._traps.add(pattern)

    def holds(self, url: str, finder: str) -> bool:
        """Return whether to skip `url`, to which the page at `finder` linked; count it if so."""
        trap = self._trap_of(url) if self._traps and finder else None
        if trap is None or self._trap_of(finder) is None:
            return False
        self.left["/".join(trap).replace("/?", "?")] += 1
        return True

    def _trap_of(self, url: str) -> Pattern | None:
        return next((pattern for pattern in _patterns(url) if pattern in self._traps), None)


def _patterns(url: str) -> list[Pattern]:
    """Return the patterns that `url` shares with others: one path part varies, the query varies, or parts repeat."""
    parts = urlsplit(url)
    base, path = origin(url), re.split(r"[/;]", parts.path)[1:]
    names = [f"?{'&'.join(f'{name}={VARIES}' for name, _ in parse_qsl(parts.query, keep_blank_values=True))}"]
    query = [f"?{parts.query}"] if parts.query else []
    found: list[Pattern] = [(base, *path, *names)] if parts.query else []
    found += [(base, *path[:n], VARIES, *path[n + 1 :], *query) for n in range(len(path)) if path[n]]
    once = list(dict.fromkeys(path))
    return [*found, (base, *once, f"{VARIES}{VARIES}", *query)] if len(once) < len(path) else found
