"""Extracts the lines of a PDF with their positions and fonts, and restores monospaced columns.

Units are points, measured from the lower left corner of a page. Independent of sections.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

from pipelines.text.cleaning import clean_page

_FIXED_PITCH = 1  # bit of a font descriptor's flags; TeX does not set it, so font names count as well
_MONOSPACED = re.compile(
    r"mono|nimbusmon|courier|consol|typewriter|menlo|monaco|inconsolata|fixed|terminal|sourcecode|firacode|hack|"
    r"(?:^|\+)(?:cm|ec|sf|la|lm|tx|t1x|pcr|cmsl|cmit|ecsl|rml)\w*tt|tt\d+$|letter ?gothic|lucida ?console|ocr",
    re.IGNORECASE,
)
_BOLD = re.compile(r"bold|black|heavy|semibd|(?:^|\+)(?:cmb|ecb|sfb|lab|cmssbx)", re.IGNORECASE)
_SAMPLES = 4  # characters per line whose font is looked up; each lookup takes 2 µs


class Line(NamedTuple):
    """A line of a page: its text, the positions of its first and last characters, their height, and the font."""

    text: str
    left: float
    right: float
    base: float
    height: float
    monospaced: bool
    bold: bool


class PageLines(NamedTuple):
    """The lines of a page in content order, and the height of the page."""

    lines: tuple[Line, ...]
    height: float


def lines_of(pdf: pypdfium2.PdfDocument, number: int) -> PageLines:
    """Return the nonempty lines of a page."""
    page = pdf[number]
    text_page = page.get_textpage()
    try:
        return PageLines(tuple(_lines(text_page)), float(page.get_height()))
    finally:
        text_page.close()
        page.close()


def _lines(text_page: Any) -> Iterator[Line]:
    handle = text_page.raw
    text = _characters(text_page)
    for match in re.finditer(r"[^\r\n\x02\ufffe]*[\x02\ufffe]?", text):  # PDFium joins two lines at a hyphen
        places = [match.start() + number for number, sign in enumerate(match[0]) if not sign.isspace()]
        if places:
            yield _line(handle, text, places)


def _characters(text_page: Any) -> str:
    """Return the text of a page with exactly one character for each character that PDFium counts."""
    count = text_page.count_chars()
    text = str(text_page.get_text_range())
    if len(text) == count:
        return text
    signs = (pdfium.FPDFText_GetUnicode(text_page.raw, number) for number in range(count))
    return "".join(chr(sign) if 0 < sign < 0x110000 else " " for sign in signs)


def _line(handle: Any, text: str, places: Sequence[int]) -> Line:
    step = max(1, len(places) // _SAMPLES)
    fonts = [_font(handle, place) for place in places[::step]]
    monospaced = sum(fixed for fixed, _ in fonts) >= 0.8 * len(fonts)
    box = _box(handle, places[0])
    shown = _in_columns(handle, text, places) if monospaced else text[places[0] : places[-1] + 1]
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
