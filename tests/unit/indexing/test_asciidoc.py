"""AsciiDoc reads as Asciidoctor renders it: sections, ids, blocks, lists, tables, inline markup."""

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.page.tree import Document
from pipelines.records import Page
from tests.kit.blocks import blocks_of


def read(text: str) -> Document:
    return read_page(Page("https://x.org/p.adoc", text.encode(), "text/plain"))


def words(text: str) -> str:
    return "\n\n".join(block.text for section in read(text).sections for block in blocks_of(section))


def test_sections_have_the_ids_of_asciidoctor():
    document = read(
        "= The guide\nAda L. <a@b.c>\n:product: Acme\n\nAbout {product}.\n\n== What's new & old\n\na\n\n"
        "== What's new & old\n\nb\n\n[[mine]]\n=== {product} 1.2\n\nc\n\n[#own.role]\n== Own\n\nd\n"
    )
    found = [(section.anchor, section.headings[-1]) for section in document.sections]
    assert document.title == "The guide" and blocks_of(document.sections[0])[0].text == "About Acme."
    assert found[1:] == [
        ("_whats_new_old", "What's new & old"), ("_whats_new_old_2", "What's new & old"), ("mine", "Acme 1.2"),
        ("own", "Own"),
    ]  # fmt: skip


def test_title_may_set_its_id_and_other_titles_stay():
    document = read("= P\n\n== A b [[own]]\n\nSee <<own>> and <<_the_end>>.\n\n== The _end_\n\nb\n")
    assert [section.anchor for section in document.sections] == ["own", "_the_end"]
    assert blocks_of(document.sections[0])[0].text == "See A b and The end."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a *b* _c_ `d` `+e+` **f**g #h# [.x]#i# "`j`"', "a b c d e fg h i “j”"),
        (
            "See https://a.org/x[the page^], link:b.html[b,window=_blank] and https://c.org[].",
            "See the page, b and https://c.org.",
        ),
        ("<<id,Words>>, <<other>>, xref:m:a/page.adoc#id[Page], xref:a/page.adoc[].", "Words, other, Page, page."),
        ("Press kbd:[Ctrl+C], menu:File[Save], btn:[OK]footnote:[Soon.].", "Press Ctrl+C, File > Save, OK (Soon.)."),
        ("a ((b)) (((c, d)))e {empty}`<f> {g}` icon:x[] \\{h}, {url}/i[j]", "a b e <f> {g} {h}, j"),
        ("// no\na\n// no\nb\n\n////\nno\n////\n\ninclude::gone.adoc[]\n\nvideo::a.mp4[]", "a b"),
        ("NOTE: Words\nand more.", "Note\n\nWords and more."),
        (
            "[TIP]\n.Titled\n====\nWords.\n\n----\nx = 1\n----\n====\n\nAfter.",
            "Tip\n\nTitled\n\nWords.\n\nx = 1\n\nAfter.",
        ),
        ("* a\n** b\n+\nmore\n\n. c\n\nAfter.", "- a\n\n  - b\n\n    more\n\n    1. c\n\nAfter."),
        ("a::\n  b\nc:: d\n+\n----\ne\n----", "a:\n\nb\n\nc:\n\nd\n\ne"),
        (".Listed\n[source,java]\n----\nint a; // <1>\n----\n<1> One", "Listed\n\nint a;\n\n1. One"),
        (' $ run {x}\n\n:x: y\n\n[subs="attributes"]\n....\n{x}\n....', "$ run {x}\n\ny"),
        ('[cols="1,1"]\n|===\n|A |B\n\n|c\n|d `\\|`\n2+|e\n|===', "c | d |\ne | "),
        ('[cols="1,2a"]\n|===\n|a\n|b\n\n* c\n// no\n* d\n\n|e\n|f\n// no\n|===', "a | b c d\ne | f"),
        ("|===\n|a\na|\n----\nb\nc\n----\n|===", "a\n\nb\nc"),
        ("|===\n|a |icon:times[] |icon:check[]\n|===", "a | ✗ | ✓"),
        (":a:\nifdef::a[]\nb\nendif::[]\nifdef::c[]\nd\nendif::[]\nifndef::c[e]", "b e"),
        ("[tabs]\n======\nOne::\n+\na\n\nTwo::\n+\nb\n======", "One:\n\na\n\nTwo:\n\nb"),
        # A list as the meaning of a term.
        ("A::\n* b\n* c\nD::\n. e\n\nAfter.", "A:\n\n- b\n- c\n\nD:\n\n1. e\n\nAfter."),
        # References without words have the title of their place.
        (
            "<<s>>, xref:#s[], <<pp>>.\n\n[[s,The *S*]]\nIt is b.\n\n* [[[pp,1]]] c",
            "The S, The S, [1].\n\nIt is b.\n\n- [1] c",
        ),
        (".T `x` \n[#s]\n----\nb\n----\n\nSee{empty}xref:#s[].", "b\n\nSeeT x."),
        # Attributes: over several lines, counted, set in a line.
        (":a: b \\\n  c\n\n{a}{set:d:e} {d} {counter:f}{counter:f}{counter2:f} {f}", "b c e 12 3"),
        ('ifeval::[2 > 10]\nno\nendif::[]\nifeval::["{a}" != "b"]\nc\nendif::[]', "c"),
        ("ifdef::backend-html5[]\na\nendif::[]\nifdef::env-github[b]", "a"),
        # Signs that are written as text.
        (
            "`a &lt; b` `/\\{c}` \\<<d>> \\https://e.org[f] -> (C) g__h__i ^j^k",
            "a < b /{c} <<d>> https://e.org[f] → © ghi jk",
        ),
        ("a footnote:b[c], dfootnote:b[]", "a (c), d"),
        ('[subs="+quotes"]\n----\n$ *a* _b_ c_d_e f*g\n----', "$ a b c_d_e f*g"),
        ("[quote,A. L.,Book]\nWords.\n\n[verse,B]\n____\na\n  b\n____", "Words.\n\n— A. L., Book\n\na\nb\n\n— B"),
        ("[verse]\n____\na\n\nb\n____\nAfter.", "a\nb\n\nAfter."),
        ("|===\n2*|a\n|b |c\n|===", "a | a\nb | c"),
        ("a <- b <= c => d -> e", "a ← b ⇐ c ⇒ d → e"),
    ],
)
def test_asciidoc_is_read_as_it_is_published(text, shown):
    assert words(text) == shown


def test_front_matter_gives_the_title_and_is_not_read():
    document = read("---\ntitle: The guide\n---\n\n== A\n\na\n")
    assert document.title == "The guide" and words("---\ntitle: The guide\n---\n\n== A\n\na\n") == "a"


def test_underlined_titles_are_sections_and_listings_stay():
    text = "Guide\n=====\n\nFirst part\n----------\n\na\n\nInner\n~~~~~\n\nLong text\n----\nx\n\nyyyy\n----\n"
    document = read(text)
    assert document.title == "Guide"
    assert [section.headings for section in document.sections] == [
        ("Guide", "First part"), ("Guide", "First part", "Inner"),
    ]  # fmt: skip
    assert words(text) == "a\n\nLong text\n\nx\n\nyyyy"
