"""Bytes become text that is fit for a database and a model. Knows no HTML beyond where a page declares its charset."""

import codecs
import re
import unicodedata

# What the Web means by these names (WHATWG Encoding Standard): a page that says latin-1 is windows-1252.
_WEB_NAMES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(
    rb"<meta[^<>]{0,500}?charset\s*=\s*[\"']?\s*([\w:.-]{1,40})|<\?xml[^<>]{0,200}?encoding=[\"']([\w:.-]{1,40})",
    re.IGNORECASE,
)
_META_WITHIN = 8192  # browsers look at 1,024 bytes; Sphinx themes that inline styles put it later
_DETECT_WITHIN = 65536  # enough letters to tell encodings apart, and detection stays in the tens of milliseconds
_BAD_SHARE = 0.02  # of characters that do not decode, up to which a guess is believed: cut pages have one

# Controls but tab and line feed; lone surrogates; characters without width that hide text or break words
# (soft hyphen, zero width, bidi overrides, variation selectors, BOM, tags) and noncharacters.
_GARBAGE = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\ud800-\udfff\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0f\ufeff\ufffe\uffff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
LINE_BREAK = "\u2028"  # stands for <br> until a paragraph is written


class UnreadablePage(ValueError):
    """A page out of which no text can be had; `url` names it and `reason` says why, for its row."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot read {self.url}: {self.reason}"


def clean(text: str) -> str:
    """`text` without NUL, controls, lone surrogates and invisible characters, in Unicode's NFC."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", _GARBAGE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def paragraph(text: str) -> str:
    """`text` as prose: runs of white space become one space, only marked line breaks stay."""
    if LINE_BREAK not in text:
        return " ".join(clean(text).split())
    lines = (" ".join(clean(line).split()) for line in text.split(LINE_BREAK))
    return "\n".join(line for line in lines if line)


def listing(text: str) -> str:
    """`text` as code: line breaks and indentation as they are, without blank lines around it."""
    lines = [line.rstrip() for line in clean(text.replace(LINE_BREAK, "\n")).replace("\xa0", " ").split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def decode(body: bytes, charset: str | None = None, *, detect: bool = True) -> str:
    """The text of `body`: by its BOM, else `charset` (what the server declared), else what the page declares,
    else UTF-8 if it reads as such, else (with `detect`) the encoding that its letters speak for. Never raises."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace")
    for name in _candidates(body, charset):
        text = body.decode(name, "replace")
        if text.count("\ufffd") <= 1 + _BAD_SHARE * len(text) and text.count("\0") <= _BAD_SHARE * len(text):
            return text
    return body.decode(_detected(body) if detect else "cp1252", "replace")


def _candidates(body: bytes, charset: str | None) -> list[str]:
    meta = _META.search(body, 0, _META_WITHIN)
    declared = (meta.group(1) or meta.group(2)).decode("ascii", "ignore") if meta else None
    names = [name for name in (_known(charset), _known(declared)) if name]
    return [*names, "utf-8"]


def _known(charset: str | None) -> str | None:
    """Python's name for `charset`, None for one that is no text encoding."""
    try:
        info = codecs.lookup(charset or "")
    except (LookupError, ValueError):
        return None
    return _WEB_NAMES.get(info.name, info.name) if info._is_text_encoding else None


def _detected(body: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(body[:_DETECT_WITHIN]).best()
    return best.encoding if best else "cp1252"
