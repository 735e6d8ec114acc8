"""Decodes bytes and cleans text for the database and the models.

The only HTML it reads is the place where a page declares its charset.
"""

import codecs
import re

from w3lib.encoding import read_bom

from pipelines.records import Page
from pipelines.text.cleaning import clean_for_storage
from pipelines.text.phrases import read_names

# Aliases that browsers apply (WHATWG Encoding Standard): a page declared as latin-1 is read as windows-1252.
_WEB_NAMES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
_CHARSETS = read_names(__name__)["charsets"]
_META = re.compile(
    rb"<meta[^<>]{0,500}?charset\s*+=\s*+[\"']?\s*+([\w:.-]{1,40})|<\?xml[^<>]{0,200}?encoding=[\"']([\w:.-]{1,40})",
    re.IGNORECASE,
)
_ONE_BYTE = ("cp125", "iso8859", "koi8", "cp866", "cp874", "mac")  # encodings in which any byte sequence is valid
_META_WITHIN = 8192  # browsers read 1,024 bytes; themes with inline styles declare it later
_DETECT_WITHIN = 65536  # bytes; enough letters to distinguish encodings within some tens of milliseconds
_BAD_SHARE = 0.02  # tolerated share of undecodable characters; truncated pages end with one

NEEDS_JAVASCRIPT = "it has no text without JavaScript"  # reason of an UnreadablePage that JavaScript would fill
TOO_SLOW = "reading it takes too long"  # reason of an UnreadablePage that exceeded its time limit
LINE_BREAK = "\u2028"  # stands for <br> until a paragraph is written


class UnreadablePage(ValueError):
    """A page has no readable text. `url` names it, and `reason` is stored in its row."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot read {self.url}: {self.reason}"


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def text_of_page(page: Page) -> str:
    """Return the body of `page` as text with "\\n" as the only line break. Raises UnreadablePage for binary data."""
    text = decode(page.body, page.charset)
    noise = sum(text.count(sign) for sign in "\0\x01\x02\x03\x04\x05\x06\x08\ufffd")
    if noise > 0.3 * len(text):
        raise UnreadablePage(page.url, "binary data, not text")
    return without_escapes(clean_for_storage(text).replace("\r\n", "\n").replace("\r", "\n"))


def without_escapes(text: str) -> str:
    """Return `text` without terminal color sequences (`ESC[32m`)."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def as_paragraph(text: str) -> str:
    """Return `text` as prose: each run of whitespace becomes one space, and only LINE_BREAK breaks a line."""
    if LINE_BREAK not in text:
        return " ".join(text.split())
    return "\n".join(filter(None, map(as_paragraph, text.split(LINE_BREAK))))


def as_listing(text: str) -> str:
    """Return `text` as code, with its line breaks and indentation but without blank lines around it."""
    lines = text.replace(LINE_BREAK, "\n").replace("\xa0", " ").split("\n")
    return "\n".join(map(str.rstrip, lines)).strip("\n")


def decode(body: bytes, charset: str | None = None, *, detect: bool = True) -> str:
    """Decode `body` with the most reliable encoding available. Never raises.

    In order: the BOM, `charset` (declared by the server), the charset that the page declares, UTF-8 if it fits, and
    (with `detect`) the most likely encoding. If a one-byte charset is declared but the non-ASCII characters are valid
    UTF-8, the page is read as UTF-8.
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
    """Return whether `body` is UTF-8 with non-ASCII characters; text in other charsets is so only by chance."""
    try:
        return not body.isascii() and bool(body.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _python_name(charset: str | None) -> str | None:
    """Return Python's name for `charset`, or None if it is not a charset used on the Web."""
    try:
        info = codecs.lookup(charset or "")
    except (LookupError, ValueError):
        return None
    return _WEB_NAMES.get(info.name, info.name) if info.name in _CHARSETS else None


def _detect_charset(body: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(body[:_DETECT_WITHIN]).best()
    return best.encoding if best else "cp1252"
