"""Decides which URLs may stay in an answer: its sites' URLs as links, and its passages' URLs as text.

This module reads URLs as text, as leniently as the WHATWG standard does; it knows nothing about Markdown.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from html import unescape

from pipelines.answering.sanitizing.filled import FilledURLs

LONGEST_URL = 2000  # characters of a URL that may be shown as text
# Schemes that a browser follows, runs or shows, with or without slashes after the colon.
SCHEMES = ("http", "https", "ftp", "ftps", "sftp", "ws", "wss", "javascript", "vbscript", "data")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "0.0.0.0"})

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_ABSOLUTE = re.compile(r"(https?|wss?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?#]|$)", re.IGNORECASE)
# Anything that makes a browser leave the page: a scheme, slashes of either kind, entities that may hide them.
_LEADS_AWAY = re.compile(r"[:\\&<\s]|//")
_TO_HOST = re.compile(r"[/\\]{2}")
_LEADS_ELSEWHERE = re.compile(rf"[/\\]{{2}}|(?:{'|'.join(SCHEMES)}):", re.IGNORECASE)
_LEADS_AWAY_IN_CODE = re.compile(r"[\\&]|//|(?:https?|s?ftps?|wss?|javascript|vbscript):", re.IGNORECASE)
_DROPPED = str.maketrans("", "", "\t\n\r")  # a browser drops these anywhere in a URL
_LINE_BREAK = re.compile(r"\\\n(?s:.*)")  # a hard line break in Markdown
_URL_END = re.compile(r"[\s<>\"'`]")
_SENTENCE_END = ".,;:!?)]}*_~|"
_AFTER_URL = ".,;:!?)*_~|\"'"  # after a URL that ends with a placeholder
# Where a URL may begin in a passage: everything that the scanner of an answer recognizes, and mailto addresses.
_QUOTABLE = re.compile(
    rf"(?<![a-z0-9])(?:(?:{'|'.join(SCHEMES)}|mailto):|www\.)(?=\S)|(?<=ttp|tps|ftp|..;):[/\\]|(?<![:\w/\\])/[/\\]",
    re.IGNORECASE,
)
# Text after a scheme that is part of a name and that no renderer takes for a URL: `http::Response`, `"http:default"`. A
# host has a dot, slashes lead to it, and other characters may hide both. In a longer name (`core.http:a.b`), dots are
# common.
_HIDES = r"/\\@&%\[\u3002\uff0e\uff61"
_NAME = re.compile(rf":(?:[^\W\d]|$)|[^{_HIDES}.]*[^\w{_HIDES}]*$")
_PART_OF_NAME = re.compile(rf"[^{_HIDES}]*$")
_JOINED = re.compile(r"[^\W_][._-]$")
_NAME_OF_CODE = re.compile(r":?[\w-]+(?::+[\w-]+)*[^\w(`<\[=+]*$")
# A data URL has a comma, with an optional media type before it.
_DATA = re.compile(r"(?:[\w.+-]+/[\w.+-]+)?(?:;[^,\s]*)?,\S")
_SCHEME = re.compile(r"(?:https?|s?ftps?|wss?)://", re.IGNORECASE)
_CITED = re.compile(r"\[[\d,; -]+\]")
_PATH_BEGUN = re.compile(r"[^/]*//[^/?#]*[/?#]")


def origin(url: str) -> str:
    """Return scheme, host and port of a URL in lower case, without the default port; "" if the origin is unclear."""
    match = _ABSOLUTE.match(url)
    if not match:
        return ""
    scheme, host, port = match[1].lower(), match[2].lower(), match[3]
    return f"{scheme}://{host}" + (f":{port}" if port and port != _DEFAULT_PORTS[scheme] else "")


def url_of(token: str) -> str:
    """Return the URL at the start of `token`, without the punctuation that ends a sentence."""
    written = _URL_END.split(token, maxsplit=1)[0]
    url = written.rstrip(_SENTENCE_END)
    closing = written[len(url) :]
    if closing.startswith(")") and url.count("(") > url.count(")"):  # https://wiki.example/A_(b)
        url += closing[: min(len(closing) - len(closing.lstrip(")")), url.count("(") - url.count(")"))]
    return url or written


def leads_away(target: str) -> bool:
    """Return whether a link target may lead away from the page."""
    return bool(_LEADS_AWAY.search(target))


def leads_away_in_code(text: str) -> bool:
    """Return whether text in code, where colons and backticks are common, may lead away from the page."""
    return bool(_LEADS_AWAY_IN_CODE.search(text))


def hides_away(value: str) -> bool:
    """Return whether an attribute's value, shown as code, hides its target behind entities or slashes."""
    written = value.translate(_DROPPED).strip()
    plain = unescape(written)
    return bool(_TO_HOST.match(plain) or (plain != written and _LEADS_ELSEWHERE.search(plain)))


def is_name(scheme: str, rest: str, before: str) -> bool:
    """Return whether a scheme with its colon is part of a name rather than the start of a URL.

    `rest` is the text after it up to the next space, or the first character of the next tag; `before` is the text
    before it.
    """
    if scheme == "data:":
        return not _DATA.match(rest)
    if scheme in ("javascript:", "vbscript:"):
        return bool(_NAME_OF_CODE.match(rest))
    return bool(_NAME.match(rest) or (_JOINED.search(before) and _PART_OF_NAME.match(rest)))


@dataclass(frozen=True)
class AllowedURLs:
    """The origins (`https://docs.ray.io`) that links may lead to, and the passages whose URLs may be shown as text."""

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

    @cached_property
    def _filled(self) -> FilledURLs:
        return FilledURLs(self.passages)

    def is_quoted(self, url: str, rest: str) -> bool:
        """Return whether a passage contains `url`, and `rest`, the text up to the next space, adds no word to it.

        A `rest` with words is accepted only if a passage contains it after `url`. Otherwise a placeholder that a page
        leaves open (`?q=<your question>`) could be filled with leaked data. Numbers may differ, and placeholders may
        be filled with numbers and words of the passages; see FilledURLs.
        """
        adds = re.search(r"\w", _CITED.sub("", rest))
        if url in self._quotable and (not adds or any(url + rest in passage for passage in self.passages)):
            return True
        return (url + rest.rstrip(_AFTER_URL) if adds else url) in self._filled

    def holds(self, text: str) -> bool:
        """Return whether a passage contains `text` verbatim."""
        return any(text in passage for passage in self.passages)

    def allow_target(self, target: str, *, image: bool = False) -> bool:
        """Return whether a link may lead to `target`, which may include a title; an image's URL must be absolute."""
        url = (target.split() or [""])[0]
        if leads_away(url):
            return self._is_own(url) and "\\" not in url
        return not image

    def allow_attribute(self, value: str) -> bool:
        """Return whether an HTML attribute leads nowhere else, either as a single URL or anywhere in its words."""
        value = value.translate(_DROPPED)
        return self.allow_target(value) if " " not in value.strip() else not leads_away_in_code(value)

    def allow_bare(self, url: str, rest: str, *, code: bool) -> bool:
        """Return whether a bare URL may stay, however much of `rest` a renderer adds to it."""
        whole = "@" not in rest or bool(_PATH_BEGUN.match(url))
        loopback = code and _host(url) in LOOPBACK
        # A scheme without a host comes from examples such as http://<host>:80.
        return whole and (loopback or self._is_own(url) or (url.endswith("://") and url[:-3].isalpha()))

    def _is_own(self, url: str) -> bool:
        """Return whether `url`, and each URL inside it, has an allowed origin; a site may redirect to the inner one."""
        within = (url[found.start() : found.start() + LONGEST_URL] for found in _SCHEME.finditer(url, 1))
        return origin(url) in self.origins and all(origin(url_of(inner)) in self.origins for inner in within)

    def allow_www(self, token: str) -> bool:
        """Return whether `www.…` without a scheme may stay."""
        host = _URL_END.split(token, maxsplit=1)[0].rstrip(_SENTENCE_END)
        return "@" not in token and any(origin(f"{scheme}://{host}") in self.origins for scheme in ("http", "https"))


def _host(url: str) -> str:
    match = _ABSOLUTE.match(url)
    return match[2].lower() if match else ""
