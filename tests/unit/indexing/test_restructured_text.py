"""reStructuredText is read with any directives and roles, and without reading other files."""

from pathlib import Path

import pytest

from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.page.tree import Document, leaves_of
from pipelines.records import Page
from tests.kit.blocks import blocks_of
from tests.kit.sectioning import text_of


def read(text: str) -> Document:
    return read_page(Page("https://x.org/p.html", text.encode(), "text/x-rst"))


def words(document: Document) -> str:
    return text_of(*document.sections)


def anchors(document: Document) -> list[str]:
    return [section.anchor for section in document.sections]


def test_sections_have_the_anchors_of_sphinx():
    document = read(
        ":orphan:\n\nThe Guide\n=========\n\nFirst.\n\n.. _own-label:\n\nStep 1: *Begin*\n---------------\n\nSee "
        ":ref:`own-label`.\n\nZwölf\n-----\n\nTwelve.\n\n第一\n-----\n\nOne.\n"
    )
    assert document.title == "The Guide"
    assert anchors(document) == ["the-guide", "step-1-begin", "zwolf", "id1"]
    assert document.sections[1].anchors == ("the-guide", "own-label", "step-1-begin")
    assert "See Step 1: Begin." in words(document)
    assert "orphan" not in words(document)


def test_numbered_documents_are_named_and_linked_like_in_sphinx():
    document = read(
        ":rfc:`9103`, :rfc:`9103#section-9.3`, :rfc:`the\nauthentication <9103#section-9.3>`, :pep:`8`, :cve:`2024-1`, "
        ":rfc:`unknown`.\n"
    )
    assert words(document) == ("RFC 9103, RFC 9103 Section 9.3, the authentication, PEP 8, CVE 2024-1, RFC unknown.")
    targets = [
        span.target for paragraph in leaves_of(document.sections[0].content) for span in paragraph.spans if span.target
    ]
    rfc = "https://datatracker.ietf.org/doc/html/rfc9103.html"
    assert targets[:4] == [rfc, f"{rfc}#section-9.3", f"{rfc}#section-9.3", "https://peps.python.org/pep-0008/"]


def test_objects_keep_their_signatures_and_texts_in_their_section():
    document = read(
        "json\n====\n\n.. module:: json\n   :synopsis: Of JSON.\n\n.. function:: dump(obj, fp)\n\n   Writes.\n\n"
        ".. class:: Encoder(*, a=1)\n\n   Encodes.\n\n   .. method:: default(o)\n\n      Falls back.\n\n"
        ".. c:function:: int Py_Init(void)\n\n   Starts.\n\n.. option:: -b, --bytes\n\n   Warns.\n\n"
        ".. glossary::\n\n   Big Word\n      Explained.\n"
    )
    assert anchors(document) == ["json"]
    assert words(document).split("\n") == [
        "Of JSON.", "dump(obj, fp)", "Writes.", "Encoder(*, a=1)", "Encodes.", "default(o)", "Falls back.",
        "int Py_Init(void)", "Starts.", "-b, --bytes", "Warns.", "", "Big Word:", "Explained.",
    ]  # fmt: skip


DIRECTIVES = """Page
====

.. note:: Noted words.

.. versionadded:: 3.2 Versioned words.
.. versionchanged:: 3.3
   Changed words.
.. deprecated-removed:: 3.4 3.6

.. seealso:: Related words.

.. code-block:: python
   :caption: Captioned words
   :emphasize-lines: 1

   if code:
       indented()

.. math::
   :label: formula

   a + b

.. autosummary::
   :toctree: made

   ~pkg.summarised

.. autofunction:: pkg.documented

.. tab-set::

   .. tab-item:: Tab label

      Tabbed words.

.. never-heard-of:: Unknown argument
   :option: x

   Unknown content.

.. only:: html

   Conditional words.

.. table:: Table caption
   :never-heard-of: x

   ===  ===
   A    B
   ===  ===
   c    d
   ===  ===

.. figure:: x.png
   :alt: Alternative words

   Figure words.

:func:`~pkg.mod.short` and :class:`!Kept` and :class:`.Found` and :doc:`Titled words </path>` and
:unheard:`rolled` and |missing|.
"""


@pytest.fixture(scope="module")
def shown() -> str:
    return words(read(DIRECTIVES))


@pytest.mark.parametrize(
    "text",
    [
        "Noted words.", "Added in version 3.2: Versioned words.", "Changed in version 3.3: Changed words.",
        "Deprecated since version 3.4, will be removed in version 3.6", "Related words.", "Captioned words",
        "if code:\n    indented()", "a + b", "pkg.summarised", "Tab label", "Tabbed words.",
        "Unknown argument", "Unknown content.", "Conditional words.", "Table caption", "c | d", "Alternative words",
        "Figure words.", "short() and Kept and Found and Titled words and rolled and |missing|.",
    ],
)  # fmt: skip
def test_no_directive_or_role_loses_its_text(text, shown):
    assert text in shown


@pytest.mark.parametrize(("said", "shows"), [("html", True), ("latex", False), ("not latex", True), ("a_tag", True)])
def test_only_text_shown_on_the_published_page_is_read(said, shows):
    assert ("Shown" in words(read(f"Text.\n\n.. only:: {said}\n\n   Shown.\n"))) is shows


def test_code_is_marked_and_the_lines_of_a_block_stay_one_paragraph():
    section = read("Page\n====\n\nUse ``raydex index`` or :option:`-b`:\n\n| ``one``\n| two\n\nLast.\n").sections[0]
    text = blocks_of(section)[0].text
    assert text == "Use raydex index or -b:\n\none\ntwo\n\nLast."
    spans = [span for leaf in leaves_of(section.content) for span in leaf.spans]
    assert [span.text for span in spans if span.code] == ["raydex index", "-b", "one"]


def test_reference_label_is_no_text_and_two_cell_lines_are_no_list():
    table = "+-------+---+\n| f(a,  | B |\n|   bc) |   |\n+-------+---+\n| g()   | C |\n+-------+---+\n"
    document = read(f"Page\n====\n\nText.\n\n.. setting:: size\n\nSize\n----\n\nWords.\n\n{table}")
    assert words(document).split("\n") == ["Text.", "Words.", "f(a, bc) | B", "g() | C"]


def test_code_has_its_language():
    text = (
        ".. code-block:: yaml\n   :caption: C\n\n   a: b\n\n.. code:: html+twig\n\n   {{ a }}\n\n.. ipython::\n\n   1\n"
    )
    blocks = blocks_of(read(f"Page\n====\n\n{text}").sections[0])
    assert [(block.text, block.language) for block in blocks if block.kind == "code"] == [
        ("a: b", "yaml"), ("{{ a }}", "html+twig"), ("1", "")
    ]  # fmt: skip


def test_text_that_docutils_cannot_parse_stays_verbatim():
    text = words(read("Page\n====\n\nA.\n\n+---+\n| broken table |\n\n.. list-table::\n\n   no list\n\n**open\n"))
    assert all(part in text for part in ("broken table", "no list", "**open"))


def test_titles_have_published_dashes_and_a_table_of_contents_is_removed():
    title = "json --- ``a--b`` -- words\n==========================="
    document = read(f"{title}\n\nWords.\n\n.. toctree::\n   :maxdepth: 2\n\n   Install it <install>\n   usage\n")
    assert (document.title, words(document)) == ("json — a--b – words", "Words.")


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: {file}", ".. literalinclude:: {file}", ".. raw:: html\n   :file: {file}",
        ".. csv-table:: T\n   :file: {file}", ".. csv-table:: T\n   :url: file://{file}", ".. raw:: html\n\n   secret",
        ".. code-block:: text\n   :file: {file}", ".. parsed-literal::\n   :include: {file}",
        ".. figure:: {file}\n   :scale: 50", ".. image:: {file}", ".. math::\n   :file: {file}",
        ".. include:: <s5defs.txt>", ".. role:: raw-html(raw)\n   :format: html\n\n:raw-html:`secret`",
    ],
)  # fmt: skip
def test_no_other_file_and_no_raw_html_is_read(directive, tmp_path: Path):
    file = tmp_path / "file.txt"
    file.write_text("secret\n")
    document = read(f"Page\n====\n\nBefore.\n\n{directive.format(file=file)}\n\nAfter.\n")
    text = words(document)
    assert "Before." in text and "After." in text
    assert "secret" not in text.replace(":raw-html:`secret`", "")


def test_endless_page_costs_only_its_time_limit():
    bomb = "".join(f".. |a{n}| replace:: {f'|a{n + 1}| ' * 20}\n" for n in range(9)) + ".. |a9| replace:: x\n\n|a0|\n"
    child = Child()
    reader, impatient = PageReader(read_page, child=child), PageReader(read_page, patience=0.15, child=child)
    try:
        text = words(impatient(Page("https://x.org/p", bomb.encode(), "text/x-rst")))
        assert len(text) < 1_000_000
    except ValueError as error:
        assert "takes too long" in str(error) or "parser failed" in str(error)
    assert reader(Page("https://x.org/q", b"Next\n====\n\nWords.\n", "text/x-rst")).title == "Next"


def test_name_without_a_role_is_shortened_as_with_a_sphinx_role():
    assert words(read("Now `~tornado.web.Application` and `~a.run()` and `~.Locale`, but `a ~ b` and `Title`.\n")) == (
        "Now Application and run() and Locale, but a ~ b and Title."
    )
    assert words(read("See `the handler <.Handler.get>`, :ref:`genindex` and `a < b`.\n")) == (
        "See the handler, Index and a < b."
    )


def _deeper(line: str, indent: str) -> str:
    return "".join(f"{indent * n}{line}\n\n" for n in range(200)) + f"{indent * 200}the end\n"


@pytest.mark.parametrize(
    "nested",
    [
        "A. " * 300 + "the end\n",
        "- " * 3_000 + "the end\n",
        ".. [1] " * 300 + "the end\n",
        _deeper("word", "  "),
        _deeper("- word", "  "),
        _deeper(".. note::", "   "),
        _deeper(".. unknown:: word", "   "),
        "".join(f"{' ' * n}term{n}\n" for n in range(200)) + f"{' ' * 200}the end\n",
    ],
    ids=["letters", "bullets", "footnotes", "quotes", "lists", "notes", "directives", "terms"],
)
def test_deeply_nested_blocks_are_read_as_text(nested: str):
    document = read(f"Title\n=====\n\nBefore.\n\n{nested}\nAfter.\n\nNext\n====\n\nMore.\n")
    assert anchors(document) == ["title", "next"]
    assert [text in words(document) for text in ("Before.", "the end", "After.", "More.")] == [True] * 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a |br| b\n\n.. |br| raw:: html\n\n   <br>", "a b"),
        ("|x|\n\n.. |x| replace:: a |y| b |br| c", "a |y| b |br| c"),
        ("See |x|.\n\n.. |x| own-directive:: the words", "See the words."),
        ("Version |version| of |today|.", "Version of ."),
    ],
)
def test_substitution_that_can_not_be_filled_in_keeps_its_page(text, shown):
    assert " ".join(words(read(text)).split()) == shown
