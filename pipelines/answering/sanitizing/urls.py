"""Decides which URLs may stay in an answer: those of its sites, and as text those of its passages.

Knows URLs as the WHATWG standard tolerates them, as text; no Markdown.
"""

import re
from dataclasses import dataclass
from functools import cached_property

LONGEST_URL = 2000  # characters of a URL that may be shown as text
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "0.0.0.0"})

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_ABSOLUTE = re.compile(r"(https?|wss?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?#]|$)", re.IGNORECASE)
# Whatever makes a browser leave the page: a scheme, slashes of either kind, entities that may hide them.
_LEADS_AWAY = re.compile(r"[:\\&<\s]|//")
_LEADS_AWAY_IN_CODE = re.compile(r"[\\&]|//|(?:https?|s?ftps?|wss?|javascript|vbscript):", re.IGNORECASE)
_DROPPED = str.maketrans("", "", "\t\n\r")  # a browser drops them from a URL, wherever in it they stand
_URL_END = re.compile(r"[\s<>\"'`]")
_SENTENCE_END = ".,;:!?)]}*_~|"
_QUOTABLE = re.compile(r"(?<![a-z0-9])(?:https?|s?ftps?|wss?)://|(?<![a-z0-9])www\.|(?<![:\w/\\])//", re.IGNORECASE)
_SCHEME = re.compile(r"(?:https?|s?ftps?|wss?)://", re.IGNORECASE)
_CITED = re.compile(r"\[[\d,; -]+\]")
_PATH_BEGUN = re.compile(r"[^/]*//[^/?#]*[/?#]")


def origin(url: str) -> str:
    """Return scheme, host and port of a URL, lower case, without a scheme's own port; "" if it has no clear one."""
    match = _ABSOLUTE.match(url)
    if not match:
        return ""
    scheme, host, port = match[1].lower(), match[2].lower(), match[3]
    return f"{scheme}://{host}" + (f":{port}" if port and port != _DEFAULT_PORTS[scheme] else "")


def url_of(token: str) -> str:
    """Return the URL at the start of `token`, without the punctuation of a sentence behind it."""
    url = _URL_END.split(token, maxsplit=1)[0]
    return url.rstrip(_SENTENCE_END) or url


def leads_away(target: str) -> bool:
    """Return whether a link's target may leave the page."""
    return bool(_LEADS_AWAY.search(target))


def leads_away_in_code(text: str) -> bool:
    """Return whether code, where colons and backticks are common, may leave the page."""
    return bool(_LEADS_AWAY_IN_CODE.search(text))


@dataclass(frozen=True)
class AllowedURLs:
    """The origins (`https://docs.ray.io`) where links may lead, and the passages whose URLs may be shown as text."""

    origins: frozenset[str]
    passages: tuple[str, ...] = ()

    @cached_property
    def _quotable(self) -> frozenset[str]:
        return frozenset(
            url_of(passage[found.start() : found.start() + LONGEST_URL])
            for passage in self.passages
            for found in _QUOTABLE.finditer(passage)
        )

    def is_quoted(self, url: str, rest: str) -> bool:
        """Return whether a passage holds `url` as it is, with no word behind it, up to the next space, but the same.

        Else a text that a page leaves open (`?q=<your question>`) might be filled with what it should not get.
        """
        if url not in self._quotable:
            return False
        return not re.search(r"\w", _CITED.sub("", rest)) or any(url + rest in passage for passage in self.passages)

    def allow_target(self, target: str, *, image: bool = False) -> bool:
        """Return whether a link may lead to `target`, which may have a title behind it; an image must be absolute."""
        url = (target.split() or [""])[0]
        if leads_away(url):
            return self._is_own(url) and "\\" not in url
        return not image

    def allow_attribute(self, value: str) -> bool:
        """Return whether an HTML attribute leads nowhere else, as its one URL or among its words."""
        value = value.translate(_DROPPED)
        return self.allow_target(value) if " " not in value.strip() else not leads_away_in_code(value)

    def allow_bare(self, url: str, rest: str, *, code: bool) -> bool:
        """Return whether a bare URL may stay, however much of `rest` a reader's software takes to belong to it."""
        whole = "@" not in rest or bool(_PATH_BEGUN.match(url))
        loopback = code and _host(url) in LOOPBACK
        # A scheme alone is that of http://<host>:80 in a manual.
        return whole and (loopback or self._is_own(url) or (url.endswith("://") and url[:-3].isalpha()))

    def _is_own(self, url: str) -> bool:
        """Return whether `url`, and each URL within it, is of an allowed origin: a site may redirect to the latter."""
        within = (url[found.start() : found.start() + LONGEST_URL] for found in _SCHEME.finditer(url, 1))
        return origin(url) in self.origins and all(origin(url_of(inner)) in self.origins for inner in within)

    def allow_www(self, token: str) -> bool:
        """Return whether `www.…` without a scheme may stay."""
        host = _URL_END.split(token, maxsplit=1)[0].rstrip(_SENTENCE_END)
        return "@" not in token and any(origin(f"{scheme}://{host}") in self.origins for scheme in ("http", "https"))


def _host(url: str) -> str:
    match = _ABSOLUTE.match(url)
    return match[2].lower() if match else ""
