"""Decides which URLs may stay in an answer: those of its sites, and as text those of its passages.

Knows URLs as the WHATWG standard tolerates them, as text; no Markdown.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from html import unescape

LONGEST_URL = 2000  # characters of a URL that may be shown as text
# Where a browser goes by itself, with or without slashes behind the colon, and what it runs or shows.
SCHEMES = ("http", "https", "ftp", "ftps", "sftp", "ws", "wss", "javascript", "vbscript", "data")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "0.0.0.0"})

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_ABSOLUTE = re.compile(r"(https?|wss?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?#]|$)", re.IGNORECASE)
# Whatever makes a browser leave the page: a scheme, slashes of either kind, entities that may hide them.
_LEADS_AWAY = re.compile(r"[:\\&<\s]|//")
_TO_HOST = re.compile(r"[/\\]{2}")
_LEADS_ELSEWHERE = re.compile(rf"[/\\]{{2}}|(?:{'|'.join(SCHEMES)}):", re.IGNORECASE)
_LEADS_AWAY_IN_CODE = re.compile(r"[\\&]|//|(?:https?|s?ftps?|wss?|javascript|vbscript):", re.IGNORECASE)
_DROPPED = str.maketrans("", "", "\t\n\r")  # a browser drops them from a URL, wherever in it they stand
_LINE_BREAK = re.compile(r"\\\n(?s:.*)")  # of Markdown
_URL_END = re.compile(r"[\s<>\"'`]")
_SENTENCE_END = ".,;:!?)]}*_~|"
# Where a URL may begin in a passage: each beginning that the scanner of an answer knows, and addresses of mail.
_QUOTABLE = re.compile(
    rf"(?<![a-z0-9])(?:(?:{'|'.join(SCHEMES)}|mailto):|www\.)(?=\S)|(?<=ttp|tps|ftp|..;):[/\\]|(?<![:\w/\\])/[/\\]",
    re.IGNORECASE,
)
# What follows a scheme that is a word of a name, and begins no URL to any reader: `http::Response`, `"http:default"`. A
# host has a dot, slashes lead to it, and other signs may hide both. In a longer name (`core.http:a.b`) dots are common.
_HIDES = r"/\\@&%\[\u3002\uff0e\uff61"
_NAME = re.compile(rf":(?:[^\W\d]|$)|[^{_HIDES}.]*[^\w{_HIDES}]*$")
_PART_OF_NAME = re.compile(rf"[^{_HIDES}]*$")
_JOINED = re.compile(r"[^\W_][._-]$")
_NAME_OF_CODE = re.compile(r":?[\w-]+(?::+[\w-]+)*[^\w(`<\[=+]*$")
# A URL of data has a comma; before it may stand a type.
_DATA = re.compile(r"(?:[\w.+-]+/[\w.+-]+)?(?:;[^,\s]*)?,\S")
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
    written = _URL_END.split(token, maxsplit=1)[0]
    url = written.rstrip(_SENTENCE_END)
    closing = written[len(url) :]
    if closing.startswith(")") and url.count("(") > url.count(")"):  # https://wiki.example/A_(b)
        url += closing[: min(len(closing) - len(closing.lstrip(")")), url.count("(") - url.count(")"))]
    return url or written


def leads_away(target: str) -> bool:
    """Return whether a link's target may leave the page."""
    return bool(_LEADS_AWAY.search(target))


def leads_away_in_code(text: str) -> bool:
    """Return whether code, where colons and backticks are common, may leave the page."""
    return bool(_LEADS_AWAY_IN_CODE.search(text))


def hides_away(value: str) -> bool:
    """Return whether the value of an attribute, shown as code, hides by entities or slashes where it leads."""
    written = value.translate(_DROPPED).strip()
    plain = unescape(written)
    return bool(_TO_HOST.match(plain) or (plain != written and _LEADS_ELSEWHERE.search(plain)))


def is_name(scheme: str, rest: str, before: str) -> bool:
    """Return whether a scheme with its colon is a word or a part of a name, and begins no URL.

    `rest` is what follows up to the next space, or the first sign of the next tag, `before` what stands before it.
    """
    if scheme == "data:":
        return not _DATA.match(rest)
    if scheme in ("javascript:", "vbscript:"):
        return bool(_NAME_OF_CODE.match(rest))
    return bool(_NAME.match(rest) or (_JOINED.search(before) and _PART_OF_NAME.match(rest)))


@dataclass(frozen=True)
class AllowedURLs:
    """The origins (`https://docs.ray.io`) where links may lead, and the passages whose URLs may be shown as text."""

    origins: frozenset[str]
    passages: tuple[str, ...] = ()

    @cached_property
    def _quotable(self) -> frozenset[str]:
        runs = (
            passage[found.start() : found.start() + LONGEST_URL]
            for passage in self.passages
            for found in _QUOTABLE.finditer(passage)
        )
        return frozenset(url_of(text) for run in runs for text in (run, _LINE_BREAK.sub("", run)))

    def is_quoted(self, url: str, rest: str) -> bool:
        """Return whether a passage holds `url` as it is, with no word behind it, up to the next space, but the same.

        Else a text that a page leaves open (`?q=<your question>`) might be filled with what it should not get.
        """
        if url not in self._quotable:
            return False
        return not re.search(r"\w", _CITED.sub("", rest)) or any(url + rest in passage for passage in self.passages)

    def holds(self, text: str) -> bool:
        """Return whether a passage holds `text` letter for letter."""
        return any(text in passage for passage in self.passages)

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
