"""Text typeset in lines, like manual pages, is prose even in a `<pre>`; code there stays code."""

import pytest

from pipelines.indexing.reading.set_text import parts_of
from tests.kit.blocks import blocks_of
from tests.kit.sectioning import read_html

MANUAL = """copy(1)                  User Commands                  copy(1)

NAME
       copy - copy a file

DESCRIPTION
       The  command copies one file to another place.  It over\u2010
       writes what stands there, unless an option forbids  it:  read-
       only files are kept, and nothing else is ever kept by  the  com-
       mand.

       -f, --force
              Copy in any case.

       -n     Copy nothing, and say what would be done with each of all the
              files.

       o      Links are followed.
       - what is no file is left alone

           copy -f a.txt b.txt

SEE ALSO
       move(1)
"""


OVER = (
    "It overwrites what stands there, unless an option forbids it: read-only files are kept, and nothing else is ever "
    "kept by the command."
)


def test_manual_page_in_one_listing_has_sections_paragraphs_and_entries():
    sections = read_html(f"<title>copy</title><body><pre>{MANUAL}</pre>").sections
    assert [section.headings for section in sections] == [(), ("NAME",), ("DESCRIPTION",), ("SEE ALSO",)]
    assert [(block.kind, block.text) for block in blocks_of(sections[2])] == [
        ("prose", f"The command copies one file to another place. {OVER}\n\n-f, --force"),
        ("prose", "Copy in any case."),
        ("prose", "-n"),
        ("prose", "Copy nothing, and say what would be done with each of all the files."),
        ("prose", "• Links are followed.\n\n• what is no file is left alone"),
        ("code", "copy -f a.txt b.txt"),
    ]


CODE = """// The function copies one file to another place.  It overwrites what
// stands there, unless an option forbids that, and it asks nobody at all.
int copy(const char *from, const char *to);
"""


HELP = """Usage: copy [options] from to

The program copies one file to another place, and says so if it can't do that.

Options:
  -f, --force            copy in any case, and overwrite what stands there
  -n, --nothing          copy nothing, and say what would be done with all
"""


@pytest.mark.parametrize(
    "code", [CODE, HELP, "make install", "Done.", "$ ls\na.txt  b.txt\n\nTwo files.", MANUAL[-50:]]
)
def test_code_keeps_its_lines(code):
    assert parts_of(code) == []


@pytest.mark.parametrize("classes", ["><div class='highlight-none'><pre", "><pre class='screen'"])
def test_declared_listing_stays_a_listing(classes):
    html = f"<title>copy</title><body{classes}>{MANUAL}</pre>"
    assert [block.kind for block in blocks_of(read_html(html).sections[0])] == ["code"]


SENTENCE = (
    "It copies one file to another place, overwrites what stands there, and asks nobody at all before it does that."
)
NAMED = f"""<pre>
Copy is a program for files and folders, and this page tells all about it.

=======================================
1. <a name="intro">Introduction</a>                   *intro*

{SENTENCE}

   <a name="force"></a>'force'   number  (default 0)

{SENTENCE} {SENTENCE}

2. <a id="errors"></a>Errors
{SENTENCE}

E1: <a name="E1"></a>no file
</pre>"""


def test_anchor_names_in_typeset_text_begin_sections():
    sections = read_html(f"<title>copy</title><body><h1>copy</h1>{NAMED}").sections
    assert [(section.anchors, section.headings[1:]) for section in sections] == [
        ((), ()),
        (("intro",), ("1. Introduction",)),
        (("force",), ("'force'",)),
        (("errors",), ("2. Errors",)),
    ]
    assert [block.text for block in blocks_of(sections[1])][1] == SENTENCE


def test_names_in_code_do_not_make_it_prose():
    (section,) = read_html("<h1>T</h1><pre>\n<a name='l1'></a>int a;\n<a name='l2'></a>int b;</pre>").sections
    assert [(block.kind, block.text) for block in blocks_of(section)] == [("code", "int a;\nint b;")]
