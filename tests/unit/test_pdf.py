"""PDFs with an outline: a section begins at an entry's title, carries its path, and is cited by page."""

from pipelines.indexing.reading.read import read_page
from pipelines.records import Page

TEXT = [
    ["Preface to the guide."],
    ["1 Installing", "Unpack the archive.", "1.1 On Linux", "Run the script."],
    ["More on the script.", "2 Using", "Call the tool."],
]
# Title, page, children: as a table of contents nests them.
OUTLINE = [("Installing", 1, [("On Linux", 1, [])]), ("Using", 2, [])]


def pdf_with_outline() -> bytes:
    """A PDF of TEXT, a line of text each, with OUTLINE; object numbers are given out as objects are made."""
    objects: dict[int, bytes] = {}
    count = len(TEXT)
    pages = [10 + 2 * number for number in range(count)]
    for number, lines in zip(pages, TEXT, strict=True):
        shown = " T* ".join(f"({line}) Tj" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode()
        objects[number] = f"<< /Type /Page /Parent 2 0 R /Contents {number + 1} 0 R >>".encode()
        objects[number + 1] = b"<< /Length %d >> stream\n%s\nendstream" % (len(stream), stream)
    kids = " ".join(f"{number} 0 R" for number in pages)
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>"
    objects[2] = (
        f"<< /Type /Pages /Kids [{kids}] /Count {count} /MediaBox [0 0 612 792]"
        " /Resources << /Font << /F1 3 0 R >> >> >>"
    ).encode()
    objects[3] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    first, last = _entries(OUTLINE, 4, pages, objects)
    objects[4] = f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R >>".encode()
    return _file(objects)


def _entries(outline: list, parent: int, pages: list[int], objects: dict[int, bytes]) -> tuple[int, int]:
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


def test_sections_begin_at_the_outlines_titles_and_keep_their_path_over_pages() -> None:
    document = read_page(Page("https://x.org/guide.pdf", pdf_with_outline(), "application/pdf"))
    found = [(s.anchors, s.headings, " ".join(block.text for block in s.blocks)) for s in document.sections]
    assert found == [
        (("page=1",), (), "Preface to the guide."),
        (("page=2",), ("Installing",), "Unpack the archive."),
        (("page=2",), ("Installing", "On Linux"), "Run the script."),
        (("page=3",), ("Installing", "On Linux"), "More on the script."),
        (("page=3",), ("Using",), "Call the tool."),
    ]
