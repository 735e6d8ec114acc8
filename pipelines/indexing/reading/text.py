"""Decodes bytes and cleans text, so that a database and a model can take it.

Knows no HTML beyond the places where a page declares its charset.
"""

import codecs
import re

from w3lib.encoding import read_bom

from pipelines.records import Page
from pipelines.text.cleaning import clean_for_storage
from pipelines.text.phrases import read_names

# What browsers take these names for (WHATWG Encoding Standard): a page declared latin-1 is windows-1252.
_WEB_NAMES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
_CHARSETS = read_names(__name__)["charsets"]
_META = re.compile(
    rb"<meta[^<>]{0,500}?charset\s*=\s*[\"']?\s*([\w:.-]{1,40})|<\?xml[^<>]{0,200}?encoding=[\"']([\w:.-]{1,40})",
    re.IGNORECASE,
)
_ONE_BYTE = ("cp125", "iso8859", "koi8", "cp866", "cp874", "mac")  # any bytes are text in these
_META_WITHIN = 8192  # browsers read 1,024 bytes; themes with inline styles declare it later
_DETECT_WITHIN = 65536  # enough letters to tell encodings apart within some tens of milliseconds
_BAD_SHARE = 0.02  # of characters that do not decode, up to which a charset is accepted: truncated pages have one

NEEDS_JAVASCRIPT = "it holds no text without JavaScript"  # the reason of an UnreadablePage that a script fills
TOO_SLOW = "reading it takes too long"  # and of one that ends at the limit of its time
LINE_BREAK = "\u2028"  # stands for <br> until a paragraph is written


class UnreadablePage(ValueError):
    """No text can be read from a page; `url` names it, and `reason` goes into its row."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot read {self.url}: {self.reason}"


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def text_of_page(page: Page) -> str:
    """Return the body of `page` as text with "\\n" for every line break. Raises UnreadablePage for binary data."""
    text = decode(page.body, page.charset)
    noise = sum(text.count(sign) for sign in "\0\x01\x02\x03\x04\x05\x06\x08\ufffd")
    if noise > 0.3 * len(text):
        raise UnreadablePage(page.url, "binary data, not text")
    return without_escapes(clean_for_storage(text).replace("\r\n", "\n").replace("\r", "\n"))


def without_escapes(text: str) -> str:
    """Return `text` without the sequences that set the colors of a terminal (`ESC[32m`)."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def as_paragraph(text: str) -> str:
    """Return `text` as prose: runs of white space become one space; only LINE_BREAK breaks a line."""
    if LINE_BREAK not in text:
        return " ".join(text.split())
    return "\n".join(filter(None, map(as_paragraph, text.split(LINE_BREAK))))


def as_listing(text: str) -> str:
    """Return `text` as code: with its line breaks and indentation, without blank lines around it."""
    lines = text.replace(LINE_BREAK, "\n").replace("\xa0", " ").split("\n")
    return "\n".join(map(str.rstrip, lines)).strip("\n")


def decode(body: bytes, charset: str | None = None, *, detect: bool = True) -> str:
    """Decode `body` by its BOM, else by `charset` (declared by the server), else as the page declares, else as UTF-8 if
    that fits, else (with `detect`) by the most likely encoding. Never raises.

    Where a charset of one byte a character is declared, and the letters beyond ASCII are UTF-8, they are read so.
    """
    encoding, bom = read_bom(body)
    if encoding and bom:
        return body[len(bom) :].decode(encoding, "replace")
    for name in _declared_charsets(body, charset):
        text = body.decode(name, "replace")
        if text.count("\ufffd") <= 1 + _BAD_SHARE * len(text) and text.count("\0") <= _BAD_SHARE * len(text):
            return text
    return body.decode(_detect_charset(body) if detect else "cp1252", "replace")


def _declared_charsets(body: bytes, charset: str | None) -> list[str]:
    meta = _META.search(body, 0, _META_WITHIN)
    declared = (meta.group(1) or meta.group(2)).decode("ascii", "ignore") if meta else None
    names = [name for name in (_python_name(charset), _python_name(declared)) if name]
    if names and names[0].startswith(_ONE_BYTE) and _is_utf8(body):
        return ["utf-8"]
    return [*names, "utf-8"]


def _is_utf8(body: bytes) -> bool:
    """Return whether `body` is UTF-8 with letters beyond ASCII: no text in another charset is, but by chance."""
    try:
        return not body.isascii() and bool(body.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _python_name(charset: str | None) -> str | None:
    """Return Python's name for `charset`, None if it is no character set of the web."""
    try:
        info = codecs.lookup(charset or "")
    except (LookupError, ValueError):
        return None
    return _WEB_NAMES.get(info.name, info.name) if info.name in _CHARSETS else None


def _detect_charset(body: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(body[:_DETECT_WITHIN]).best()
    return best.encoding if best else "cp1252"
