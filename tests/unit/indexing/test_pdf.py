"""PDFs have sections by outline or headings, cited by page, without contents and running headers."""

from collections.abc import Sequence

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.records import Page
from tests.kit.blocks import blocks_of

FONTS = {"prose": "Helvetica", "bold": "Helvetica-Bold", "code": "Courier"}
# A line on a page: font, size, left and lower edge, text. The size of a rule is its width.
Shown = tuple[str, float, float, float, str]


def pdf_of(pages: list[list[Shown]], title: str | None = None, outline: Sequence[tuple] = ()) -> bytes:
    """Return a PDF with lines at the given positions; an outline contains titles, pages and children."""
    objects: dict[int, bytes] = {}
    numbers = [20 + 2 * place for place in range(len(pages))]
    for number, lines in zip(numbers, pages, strict=True):
        shown = "".join(
            f"{left} {base} {size} 0.7 re f\n" * (font == "rule")
            or f"BT /{font} {size} Tf {left} {base} Td ({_escaped(text)}) Tj ET\n"
            for font, size, left, base, text in lines
        ).encode("cp1252")
        objects[number] = f"<< /Type /Page /Parent 2 0 R /Contents {number + 1} 0 R >>".encode()
        objects[number + 1] = b"<< /Length %d >> stream\n%s\nendstream" % (len(shown), shown)
    kids = " ".join(f"{number} 0 R" for number in numbers)
    fonts = " ".join(f"/{name} {3 + place} 0 R" for place, name in enumerate(FONTS))
    shared = f"/MediaBox [0 0 612 792] /Resources << /Font << {fonts} >> >>"
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} {shared} >>".encode()
    for place, base in enumerate(FONTS.values()):
        objects[3 + place] = f"<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>".encode()
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R >>"
    if outline:
        objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>"
        first, last = _entries(outline, 6, numbers, objects)
        objects[6] = f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R >>".encode()
    if title is not None:
        objects[10] = f"<< /Title ({_escaped(title)}) >>".encode()
    return _file(objects).replace(b"/Root 1 0 R", b"/Root 1 0 R /Info 10 0 R" if title is not None else b"/Root 1 0 R")


def _entries(outline: Sequence[tuple], parent: int, pages: list[int], objects: dict[int, bytes]) -> tuple[int, int]:
    numbers = [max([*objects, 30]) + 1 + place for place in range(len(outline))]
    objects |= dict.fromkeys(numbers, b"")
    for place, (number, (title, page, children)) in enumerate(zip(numbers, outline, strict=True)):
        links = f"/Parent {parent} 0 R /Dest [{pages[page]} 0 R /Fit]"
        links += f" /Next {numbers[place + 1]} 0 R" if place + 1 < len(numbers) else ""
        links += f" /Prev {numbers[place - 1]} 0 R" if place else ""
        if children:
            first, last = _entries(children, number, pages, objects)
            links += f" /First {first} 0 R /Last {last} 0 R /Count {len(children)}"
        objects[number] = f"<< /Title ({title}) {links} >>".encode()
    return numbers[0], numbers[-1]


def _file(objects: dict[int, bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), {}
    for number, content in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj %s endobj\n" % (number, content)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n" % size
    for number in range(size):
        out += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 65535 f \n"
    return bytes(out + b"trailer << /Root 1 0 R /Size %d >>\nstartxref\n%d\n%%%%EOF" % (size, start))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def prose(base: float, text: str, left: float = 72, size: float = 10) -> Shown:
    return "prose", size, left, base, text


def read(pages: list[list[Shown]], title: str | None = None, outline: Sequence[tuple] = ()):
    return read_page(Page("https://x.org/guide.pdf", pdf_of(pages, title, outline), "application/pdf"))


def words(document) -> str:
    return "\n\n".join(block.text for section in document.sections for block in blocks_of(section))


def test_sections_start_at_outline_titles_and_keep_their_path_across_pages() -> None:
    lines = [
        ["Preface to the guide."],
        ["1 Installing", "Unpack the archive.", "1.1 On Linux", "Run the script."],
        ["More on the script.", "2 Using", "Call the tool."],
    ]
    pages = [[prose(720 - 14 * line, text, size=12) for line, text in enumerate(texts)] for texts in lines]
    document = read(pages, outline=[("Installing", 1, [("On Linux", 1, [])]), ("Using", 2, [])])
    found = [(s.anchors, s.headings, " ".join(block.text for block in blocks_of(s))) for s in document.sections]
    assert found == [
        (("page=1",), (), "Preface to the guide."), (("page=2",), ("Installing",), "Unpack the archive."),
        (("page=2",), ("Installing", "On Linux"), "Run the script."),
        (("page=3",), ("Installing", "On Linux"), "More on the script."), (("page=3",), ("Using",), "Call the tool.")
    ]  # fmt: skip


BODY = [
    prose(600 - 12 * line, f"Words of line {line} go on and on until the margin of the page is reached")
    for line in range(6)
]
COVER = [("bold", 24, 72, 650, "The Large"), ("bold", 24, 72, 622, "Guide"), ("prose", 12, 72, 580, "Version 3")]


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("A given title", "A given title"),
        ("Guide to Node.js", "Guide to Node.js"),
        *((name, "The Large Guide") for name in (
            None, "", "Microsoft Word - x.doc", "untitled", "Untitled-1", "report_final.docx", "C:\\docs\\report 2",
            "(pixel.eps)", "Slide 1", "main.dvi", "file:///tmp/a.html",
        )),
    ],
)  # fmt: skip
def test_declared_title_is_used_unless_a_program_made_it_up(given, title):
    assert read([COVER, BODY], given).title == title


def test_untitled_pdf_is_named_by_its_first_heading_or_file_name():
    headed = [("bold", 10, 72, 700, "First heading"), *BODY]
    assert read([headed]).title == "First heading"
    assert read([BODY]).title == "guide.pdf"


def test_table_of_contents_is_omitted_anywhere():
    contents = [
        ("bold", 14, 72, 700, "Contents"), ("bold", 10, 72, 660, "1 Introduction 7"),
        prose(640, "1.1 Getting started ........................ 8"),
        prose(620, "1.2 Going on . . . . . . . . . . . . . 9"),
        prose(600, "1.3 Ending \u2026\u2026\u2026\u2026\u2026\u2026 10"), prose(580, "2 Appendix 11"),
    ]  # fmt: skip
    text = words(read([contents, [prose(700, "A sentence ... with dots, and one more."), *BODY]]))
    assert "A sentence ... with dots" in text
    assert not any(part in text for part in ("Introduction", "Getting started", "Going on", "Ending", "Appendix"))


def test_index_of_words_is_omitted():
    index = [prose(700 - 14 * line, f"word{line}, {line + 3}, {2 * line + 20}") for line in range(20)]
    assert words(read([BODY, index])) == words(read([BODY]))


def test_running_headers_and_page_numbers_are_omitted():
    def page(number: int, chapter: str) -> list[Shown]:
        header = prose(760, f"{number} Chapter {chapter}", left=72 if number % 2 else 300)
        return [
            header, prose(700, f"Page {'abcdefgh'[number - 1]} begins here."), *BODY,
            prose(40, f"- {number} -", left=300)
        ]  # fmt: skip

    text = words(read([page(number, "One" if number < 5 else "Two") for number in range(1, 9)]))
    assert "Chapter" not in text and "- 3 -" not in text
    assert all(f"Page {letter} begins here." in text for letter in "abcdefgh")


def test_code_keeps_its_lines_and_columns():
    code = [("code", 10, 96, 500, "def f(x):"), ("code", 10, 120, 488, "if x:"),
            ("code", 10, 144, 476, "return 1   # one"), ("code", 10, 96, 452, "f(2)")]  # fmt: skip
    after = [prose(430, "The word"), ("code", 10, 120, 430, "f"), prose(430, "is a function.", left=130)]
    [section] = read([[*BODY, prose(515, "For example:"), *code, *after]]).sections
    assert [block.kind for block in blocks_of(section)] == ["prose", "code", "prose"]
    assert blocks_of(section)[0].text.endswith("For example:")
    assert blocks_of(section)[1].text == "def f(x):\n    if x:\n        return 1   # one\n\nf(2)"
    assert blocks_of(section)[2].text == "The word f is a function."


def test_code_in_a_free_courier_clone_is_code():
    body = pdf_of([[*BODY, ("code", 10, 72, 500, "Name"), ("code", 10, 72, 488, "family")]])
    document = read_page(Page("https://x.org/a.pdf", body.replace(b"/Courier", b"/NimbusMonL-Regu"), "application/pdf"))
    assert [block.kind for block in blocks_of(document.sections[0])] == ["prose", "code"]


def test_indented_code_in_any_font_keeps_its_lines():
    code = [prose(500, "$ tool --all --now", left=100), prose(488, "$ tool --stop | less", left=100)]
    listed = [prose(460, "1. First $item = new;", left=100), prose(448, "2. Second item", left=100)]
    [section] = read([[*BODY, *code, *listed]]).sections
    assert blocks_of(section)[1].kind == "code"
    assert blocks_of(section)[1].text == "$ tool --all --now\n$ tool --stop | less"
    assert "First" in blocks_of(section)[2].text and blocks_of(section)[2].kind == "prose"


def test_headings_of_a_pdf_without_an_outline_come_from_its_fonts():
    page = [("bold", 18, 72, 740, "1. Large part"), *BODY, ("bold", 13, 72, 500, "1.1. Small"),
            ("bold", 13.2, 72, 486, "part"), prose(470, "Words of the small part."), ("bold", 18, 72, 440, "2. Other"),
            prose(420, "Words of the other.")]  # fmt: skip
    document = read([page, [prose(700, "It goes on here.")]])
    assert [(section.anchor, section.headings) for section in document.sections] == [
        ("page=1", ("1. Large part",)), ("page=1", ("1. Large part", "1.1. Small part")), ("page=1", ("2. Other",)),
        ("page=2", ("2. Other",)),
    ]  # fmt: skip


def test_lines_become_paragraphs_and_hyphens_disappear():
    page = [
        prose(700, "The first paragraph is long enough to reach the margin, and some-"), prose(688, "where it ends."),
        prose(664, "The second begins after a gap and is about the option --gen-"), prose(652, "words of pro-"),
        prose(640, "grams and 32-"), prose(628, "bit numbers"), prose(616, "- a point"), prose(604, "- another point")
    ]  # fmt: skip
    assert words(read([page])).split("\n\n") == [
        "The first paragraph is long enough to reach the margin, and somewhere it ends.",
        "The second begins after a gap and is about the option --gen-words of programs and 32-bit numbers",
        "- a point", "- another point",
    ]  # fmt: skip


def beside(left: float, *parts: tuple[str, float]) -> list[Shown]:
    """Return parts of one line in Helvetica, each with its shift; shifted parts are smaller."""
    widths = dict.fromkeys(" ,t", 278) | {"-": 333, "i": 222, "l": 222, "s": 500, "H": 722, "O": 778}
    shown = []
    for text, shift in parts:
        size = 7 if shift else 10
        shown.append(prose(700 + shift, text, left, size))
        left += sum(widths.get(sign, 556) for sign in text) * size / 1000
    return shown


def test_exponents_and_footnote_marks_are_told_from_numbers():
    page = beside(72, ("holds 2", 0), ("32", 3.6), (" and 10", 0), ("-6", 3.6), (" in H", 0), ("2", -2), ("O", 0))
    assert words(read([page])) == "holds 2^32 and 10^-6 in H2O"
    assert words(read([beside(72, ("see the nodes", 0), ("3", 3.6), (" as", 0))])) == "see the nodes [3] as"


def test_text_below_a_rule_through_it_is_struck_out():
    line = [("prose", 10, 72, 500, "It costs 20"), ("prose", 10, 130, 500, "25 euros, no more")]
    rules = {"middle": 502.5, "under": 498.5, "table": 512}
    shown = {name: words(read([[*line, ("rule", 12, 106.5, base, "")]])) for name, base in rules.items()}
    assert shown["middle"] == "It costs ~~20~~ 25 euros, no more"
    assert shown["under"] == shown["table"] == "It costs 20 25 euros, no more"
    assert words(read([[("prose", 10, 72, 500, "Old words"), ("rule", 60, 72, 502.5, "")]])) == "~~Old words~~"
