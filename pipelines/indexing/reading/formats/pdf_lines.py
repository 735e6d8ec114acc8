"""Extracts the lines of a PDF with positions and fonts; restores columns, exponents, struck text.

Units are points, measured from the lower left corner of a page. Independent of sections.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

from pipelines.page.plain import styled
from pipelines.page.tree import Style
from pipelines.text.cleaning import clean_page

_FIXED_PITCH = 1  # bit of a font descriptor's flags; TeX does not set it, so font names count as well
_MONOSPACED = re.compile(
    r"mono|nimbusmon|courier|consol|typewriter|menlo|monaco|inconsolata|fixed|terminal|sourcecode|firacode|hack|"
    r"(?:^|\+)(?:cm|ec|sf|la|lm|tx|t1x|pcr|cmsl|cmit|ecsl|rml)\w*tt|tt\d+$|letter ?gothic|lucida ?console|ocr",
    re.IGNORECASE,
)
_BOLD = re.compile(r"bold|black|heavy|semibd|(?:^|\+)(?:cmb|ecb|sfb|lab|cmssbx)", re.IGNORECASE)
_SAMPLES = 4  # characters per line whose font is looked up; each lookup takes 2 µs
# A superscript is smaller than its line and raised. Shares of the line's height: TeX has 0.7 and 0.36, Word 0.65 and
# 0.33.
_SMALLER, _MOVED = 0.92, 0.1
_NEAR, _OFF = 0.4, 0.6  # greatest gap and shift, as shares of the height, between two parts of one line
# A rule that strikes out text is thin and between these shares of the height above the base; the middle of an x is at
# 0.22, of a capital at 0.31. Underlines are below the base, and rules of tables between lines.
_THIN, _LOW, _HIGH = 0.3, 0.1, 0.45
_MOST_OBJECTS = 20_000  # on a page; each takes 1 µs
_WORD, _DIGIT = re.compile(r"\S+"), re.compile(r"\d")
_HAS_EXPONENT = re.compile(r"[\d)\]]$|(?<![^\W\d_])[^\W\d_]{1,2}$")  # text before an exponent: 10, (a+b), x, km


class Line(NamedTuple):
    """A line of a page: its text, the positions of its first and last characters, their height, and the font."""

    text: str
    left: float
    right: float
    base: float
    height: float
    monospaced: bool
    bold: bool


class HorizontalRule(NamedTuple):
    """A horizontal rule on a page: its ends, and the height of its middle above the page's lower edge."""

    left: float
    right: float
    middle: float
    thickness: float


class PageLines(NamedTuple):
    """The lines of a page in content order, and the height of the page."""

    lines: tuple[Line, ...]
    height: float


def lines_of(pdf: pypdfium2.PdfDocument, number: int) -> PageLines:
    """Return the nonempty lines of a page."""
    page = pdf[number]
    text_page = page.get_textpage()
    try:
        return PageLines(tuple(_lines(text_page, _rules(page))), float(page.get_height()))
    finally:
        text_page.close()
        page.close()


def _rules(page: Any) -> list[HorizontalRule]:
    """Return the horizontal rules on a page."""
    rules: list[HorizontalRule] = []
    for number in range(min(pdfium.FPDFPage_CountObjects(page.raw), _MOST_OBJECTS)):
        part = pdfium.FPDFPage_GetObject(page.raw, number)
        if pdfium.FPDFPageObj_GetType(part) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        left, bottom, right, top = ctypes.c_float(), ctypes.c_float(), ctypes.c_float(), ctypes.c_float()
        if (
            pdfium.FPDFPageObj_GetBounds(part, left, bottom, right, top)
            and right.value - left.value > top.value - bottom.value
        ):
            rules.append(
                HorizontalRule(left.value, right.value, (bottom.value + top.value) / 2, top.value - bottom.value)
            )
    return rules


def _lines(text_page: Any, rules: Sequence[HorizontalRule]) -> Iterator[Line]:
    handle = text_page.raw
    text = _characters(text_page)
    line: list[int] = []
    for match in re.finditer(r"[^\r\n\x02\ufffe]*[\x02\ufffe]?", text):  # PDFium joins two lines at a hyphen
        places = [match.start() + number for number, sign in enumerate(match[0]) if not sign.isspace()]
        if line and places and not _is_one_line(handle, line[-1], places[0]):
            yield _line(handle, text, line, rules)
            line = []
        line += places
    if line:
        yield _line(handle, text, line, rules)


def _is_one_line(handle: Any, last: int, first: int) -> bool:
    """Return whether PDFium broke a line between two characters because one of them is a script."""
    (_, above), (left, base) = _origin(handle, last), _origin(handle, first)
    _, right, bottom, top = _box(handle, last)
    _, _, low, high = _box(handle, first)
    height = max(top - bottom, high - low)
    return abs(left - right) < _NEAR * height and _MOVED * height < abs(above - base) < _OFF * height


def _characters(text_page: Any) -> str:
    """Return the text of a page with exactly one character for each character that PDFium counts."""
    count = text_page.count_chars()
    text = str(text_page.get_text_range())
    if len(text) == count:
        return text
    signs = (pdfium.FPDFText_GetUnicode(text_page.raw, number) for number in range(count))
    return "".join(chr(sign) if 0 < sign < 0x110000 else " " for sign in signs)


def _line(handle: Any, text: str, places: Sequence[int], rules: Sequence[HorizontalRule]) -> Line:
    step = max(1, len(places) // _SAMPLES)
    fonts = [_font(handle, place) for place in places[::step]]
    monospaced = sum(fixed for fixed, _ in fonts) >= 0.8 * len(fonts)
    box = _box(handle, places[0])
    strikes = _strikes(_origin(handle, places[0])[1], box[3] - box[2], rules)
    shown = _in_columns(handle, text, places) if monospaced else _with_styles(handle, text, places, strikes)
    return Line(
        text=clean_page(re.sub(r"[\x02\ufffe]", "-", shown)),
        left=_origin(handle, places[0])[0],
        right=_box(handle, places[-1])[1],
        base=_origin(handle, places[0])[1],
        height=round(box[3] - box[2], 1),
        monospaced=monospaced,
        bold=all(bold for _, bold in fonts),
    )


def _in_columns(handle: Any, text: str, places: Sequence[int]) -> str:
    """Return a monospaced line with its gaps filled by the matching number of spaces."""
    origins = [_origin(handle, place)[0] for place in places]
    steps = zip(pairwise(origins), pairwise(places), strict=True)
    pitches = Counter(round(right - left, 2) for (left, right), (one, next_one) in steps if next_one == one + 1)
    pitch = pitches.most_common(1)[0][0] if pitches else 0.0
    if pitch <= 0:
        return text[places[0] : places[-1] + 1]
    signs: list[str] = []
    for place, origin in zip(places, origins, strict=True):
        column = round((origin - origins[0]) / pitch)
        signs += " " * min(200, column - len(signs))
        signs.append(text[place])
    return "".join(signs)


def _strikes(base: float, height: float, rules: Sequence[HorizontalRule]) -> list[HorizontalRule]:
    """Return the rules that strike out characters of a line with this base and height."""
    return [
        rule
        for rule in rules
        if rule.thickness < _THIN * height and _LOW * height < rule.middle - base < _HIGH * height
    ]


def _with_styles(handle: Any, text: str, places: Sequence[int], strikes: Sequence[HorizontalRule]) -> str:
    """Return a line with its exponents (2^32), footnote marks in brackets, and struck-out text (~~20~~)."""
    kept = [place for place in range(places[0], places[-1] + 1) if text[place] not in "\r\n"]
    line = "".join(text[place] for place in kept)
    # Each character takes 2 µs: other words are only searched if PDFium broke the line at a script.
    is_broken = len(line) < places[-1] + 1 - places[0]
    words = [word for word in _WORD.finditer(line) if is_broken or strikes or _DIGIT.search(word[0])]
    if not words:
        return line
    samples = places[:: max(1, len(places) // _SAMPLES)]
    height, base = max((_height(handle, place), _origin(handle, place)[1]) for place in samples)
    shown, end = "", 0
    for word in words:
        shown += line[end : word.start()]
        end = word.end()
        styles = (_style(handle, place, height, base, strikes) for place in kept[word.start() : end])
        for style, run in groupby(zip(styles, word[0], strict=True), key=itemgetter(0)):
            signs = "".join(sign for _, sign in run)
            shown += _script(shown, signs, style) if style else signs
    return (shown + line[end:]).replace("~~ ~~", " ") if strikes else shown + line[end:]


def _style(handle: Any, place: int, height: float, base: float, strikes: Sequence[HorizontalRule]) -> Style:
    """Return the style of a character in a line with this height and base."""
    left, own = _origin(handle, place)
    if any(rule.left <= left + 0.2 * height < rule.right for rule in strikes):
        return "strike"
    moved = own - base
    if abs(moved) < _MOVED * height or _height(handle, place) > _SMALLER * height:
        return ""
    return "sup" if moved > 0 else "sub"


def _script(before: str, signs: str, style: Style) -> str:
    """Return styled characters as plain text after the text `before`."""
    if style == "strike":
        return styled(signs, style)
    if style == "sub":
        return styled(signs, style) if before[-1:].isalpha() and signs.isalpha() else signs
    if _HAS_EXPONENT.search(before[-3:]):
        return styled(signs, style)
    return f" [{signs}]" if before[-1:].strip() and signs.isdecimal() else signs


def _height(handle: Any, place: int) -> float:
    _, _, bottom, top = _box(handle, place)
    return top - bottom


def _font(handle: Any, place: int) -> tuple[bool, bool]:
    """Return whether a character's font is monospaced, and whether it is bold."""
    flags, name = ctypes.c_int(0), ctypes.create_string_buffer(128)
    pdfium.FPDFText_GetFontInfo(handle, place, name, 128, flags)
    return _kind_of_font(name.value, flags.value)


@lru_cache(maxsize=4096)
def _kind_of_font(name: bytes, flags: int) -> tuple[bool, bool]:
    words = name.decode("utf-8", "replace")
    return bool(flags & _FIXED_PITCH or _MONOSPACED.search(words)), bool(_BOLD.search(words))


def _origin(handle: Any, place: int) -> tuple[float, float]:
    x, y = ctypes.c_double(0), ctypes.c_double(0)
    pdfium.FPDFText_GetCharOrigin(handle, place, x, y)
    return x.value, y.value


def _box(handle: Any, place: int) -> tuple[float, float, float, float]:
    """Return left, right, bottom and top of a character's loose bounding box."""
    box = pdfium.FS_RECTF()
    pdfium.FPDFText_GetLooseCharBox(handle, place, box)
    return box.left, box.right, box.bottom, box.top
