"""Frame elements within a page's content are left out: its table of contents, menus, tool links."""

import pytest

from pipelines.indexing.reading.layout import learn_layout
from tests.kit.blocks import blocks_of
from tests.kit.sectioning import read_html, text_of

NAMES = ("pair?", "null?", "cons", "car", "cdr")
PARTS = "".join(f'<h2 id="{n}">{name}</h2><p>It is about {name} and more.</p>' for n, name in enumerate(NAMES))
LINKS = [f'<a href="#{n}">{name}</a>' for n, name in enumerate(NAMES)]
GROUPS = "".join(f"<ul>{name[:1]}<li>{link}</li></ul>" for name, link in zip(NAMES, LINKS, strict=True))
ITEMS = "".join(f"<li>{link}</li>" for link in LINKS)


def text(html: str) -> str:
    return "\n".join(text_of(part) for part in read_html(html).sections)


CONTENTS = {
    "a list": f"<ul>{ITEMS}</ul>",
    "a list below a label": f"<div><p>On this page:</p><ul>{ITEMS}</ul></div>",
    "a table": f"<table>{''.join(f'<tr><td>4.{n}</td><td>{link}</td></tr>' for n, link in enumerate(LINKS))}</table>",
    "boxes": f"<div>{''.join(f'<div>{link}</div>' for link in LINKS)}</div>",
    "groups with names": f"<ul>{GROUPS}</ul>",
    "three parts between bullets": f"<p>{' • '.join(LINKS[:3])}</p>",
    "three parts in rows": f"<table>{''.join(f'<tr><td>{link}</td></tr>' for link in LINKS[:3])}</table>",
    "three parts below a label that is a link": (
        f"<div><a onclick='open()'>► Contents</a><div>{''.join(f'<div>{link}</div>' for link in LINKS[:3])}</div></div>"
    ),
    "three parts": f"<ul>{''.join(f'<li>{link}</li>' for link in LINKS[:3])}</ul>",
    "two parts below a label": f"<p>On this page</p><ul><li>{LINKS[0]}</li><li>{LINKS[1]}</li></ul>",
    "one part in a box with its label": f"<div><p>Contents</p><ul><li>{LINKS[0]}</li></ul></div>",
    "a line": f"<p>{' | '.join(LINKS)}</p>",
    "links to the page by its name": f"<ul>{ITEMS}</ul>".replace('"#', '"page.html#'),
}


@pytest.mark.parametrize("contents", CONTENTS.values(), ids=CONTENTS)
def test_list_of_the_parts_of_the_page_is_removed(contents):
    expected = "\n".join(["It counts.", *(f"It is about {name} and more." for name in NAMES)])
    assert text(f"<main><h1>Pairs</h1><p>It counts.</p>{contents}{PARTS}</main>") == expected


def test_contents_in_a_column_after_the_text_are_removed():
    column = f"<aside><div><p>On this page</p><ul>{ITEMS}</ul></div></aside>"
    assert "pair?" not in text(f"<main><div><h1>Pairs</h1>{PARTS}</div>{column}</main>").split("more.")[-1]


@pytest.mark.parametrize(
    ("links", "shown"),
    [
        (f"<p>See {LINKS[0]}, {LINKS[1]}, {LINKS[2]}.</p>", "See pair?, null?, cons."),
        (f"<ul><li>Use {LINKS[0]}, {LINKS[1]}, {LINKS[2]}.</li></ul>", "- Use pair?, null?, cons."),
        (f"<p>There are three ways:</p><ul>{''.join(f'<li>{link}</li>' for link in LINKS[:3])}</ul>", "- cons"),
        ("<p><a href='#0'>In this section we count</a></p>", "In this section we count"),
        (f"<h2>Overview</h2><p>{LINKS[0]}</p>", "pair?"),
    ],
)
def test_sentences_and_lists_of_few_page_parts_stay(links, shown):
    assert shown in text(f"<main><h1>Pairs</h1>{links}{PARTS}</main>").split("It is about")[0]


def test_text_next_to_a_list_of_page_parts_stays():
    html = f"<body><div><div>How to count pairs</div><div>Contents</div><ul>{ITEMS}</ul></div><h1>1. Pairs</h1>{PARTS}"
    assert text(html).startswith("How to count pairs\nIt is about pair?")
    rows = "".join(f"<tr><td>boolean</td><td>{link}</td></tr>" for link in LINKS)
    assert "boolean | pair?" in text(f"<main><h1>Pairs</h1><table>{rows}</table>{PARTS}</main>")
    assert "How to count" in text(f"<main><div><ul>{ITEMS}</ul><p>How to count pairs.</p></div>{PARTS}</main>")
    signature = f"<table><tr><td>new</td><td>{LINKS[2]} ({LINKS[3]} {LINKS[4]})</td></tr></table>"
    assert "new | cons (car cdr)" in text(f"<main><h1>Pairs</h1><p>It counts.</p>{signature}{PARTS}</main>")


def test_heading_of_text_below_contents_is_not_their_label():
    page = read_html(f"<main><h1>Pairs</h1><h2 id='o'>Overview</h2><ul>{ITEMS}</ul><p>It counts.</p>{PARTS}</main>")
    assert (page.sections[0].headings, text_of(page.sections[0])) == (("Pairs", "Overview"), "It counts.")


STAYS = {
    "what a sentence introduces": f"<p>The following functions are available:</p><ul>{ITEMS}</ul>",
    "what a sentence in the same box introduces": f"<div>There are <b>five</b> good ways:<ul>{ITEMS}</ul></div>",
    "what a sentence in Chinese introduces": f"<p>有五种方式：</p><ul>{ITEMS}</ul>",
    "with what each does": f"<ul>{''.join(f'<li>{link} tells about one of the pairs</li>' for link in LINKS)}</ul>",
    "a few": f"<ul><li>{LINKS[0]}</li><li>{LINKS[1]}</li></ul>",
}


@pytest.mark.parametrize("html", STAYS.values(), ids=STAYS)
def test_links_inside_the_text_stay(html):
    assert "pair?" in text_of(read_html(f"<main><h1>Pairs</h1><p>It counts.</p>{html}{PARTS}</main>").sections[0])


def test_menu_before_the_first_heading_without_main_content_is_removed():
    menu = "".join(f'<tr><td>{n}</td><td><a href="p{n}.html">Chapter {n}</a></td></tr>' for n in range(1, 9))
    page = read_html(f"<div><div><table>{menu}</table></div></div><div><h3>12 Pairs</h3><p>It counts.</p></div>")
    assert [(part.headings, text_of(part)) for part in page.sections] == [(("12 Pairs",), "It counts.")]


TOOL = '<a href="src/%s.html#L1">%s</a>'


@pytest.mark.parametrize(
    "html",
    [
        f"<p>It counts words. {TOOL % ('a', 'Source')} {TOOL % ('b', 'Edit')}</p>",
        f"<p>It counts words. [{TOOL % ('a', 'src')}]</p>",
        f"<p>It counts words.</p><p>{TOOL % ('a', 'View Source')}</p>",
        f"<p>It counts words.</p><div>{TOOL % ('a', 'Source')} | {TOOL % ('b', 'Edit this page')}</div>",
        f"<div>It counts words. {TOOL % ('a', '(source)')} <a href='#x'>¶</a></div>",
    ],
)
def test_source_links_are_removed(html):
    assert text(f"<main><h1>Pairs</h1>{html}</main>") == "It counts words."


def test_signature_ends_before_its_source_link():
    html = f'<dl><dt id="sum"><code>sum(x)</code> {TOOL % ("a", "[source]")}</dt><dd>It counts.</dd></dl>'
    assert text(f"<main><h1>Pairs</h1><p>Pairs.</p>{html}</main>") == "Pairs.\nIt counts."


def test_sentence_can_end_with_a_link_to_a_source():
    html = f"<p>Read the {TOOL % ('a', 'source')}</p><p>Data: {TOOL % ('b', 'Source')} of 2020.</p>"
    assert text(f"<main><h1>Pairs</h1>{html}</main>") == "Read the source\n\nData: Source of 2020."


def documents(below: str):
    pages = (f"<main><h1>Page {n}</h1><p>About {n}.</p>{below}</main>" for n in range(10))
    return [read_html(page) for page in pages]


def test_link_lines_on_most_pages_are_layout_even_below_a_heading():
    for line in (
        '<p><a href="m.html">Manual</a> | <a href="i.html">Index</a></p>',
        "<ul><li><a href='m.html'>Manual</a></li></ul>",
    ):
        pages = documents(line)
        layout = learn_layout(pages)
        assert [text_of(part) for page in pages for part in layout.strip(page).sections] == [
            f"About {n}." for n in range(10)
        ]


def test_sentences_and_code_on_most_pages_stay_below_a_heading():
    pages = documents('<p>Read <a href="w.html">the warning</a>.</p><pre>make</pre>')
    layout = learn_layout(pages)
    assert {tuple(block.kind for block in blocks_of(layout.strip(page).sections[0])) for page in pages} == {
        ("prose", "code")
    }


JUMPS = ["<a href='#top'>Back to top</a>", "<a href='#'>[top]</a>", "[<a href='#'>top</a>]", "<a href='#mark'>↩</a>"]


@pytest.mark.parametrize("jump", JUMPS)
def test_links_back_to_the_top_or_to_a_mark_are_removed(jump):
    assert text(f"<main><h1>Pairs</h1><p>It counts. {jump}</p></main>") == "It counts."
    assert text(f"<main><h1>Pairs</h1><p>It counts.</p><p>{jump}</p></main>") == "It counts."


def test_link_to_the_top_is_not_part_of_a_heading():
    page = read_html(
        "<main><h1>Pairs</h1><h2 id='a'>Cons <a href='#a'>¶</a> <a href='#top'>↑</a></h2><p>It counts.</p>"
    )
    assert page.sections[0].headings == ("Pairs", "Cons")


def test_text_after_a_link_to_the_top_is_apart():
    jump = "<p>It counts. <a href='#'>Back to top</a> It adds.</p>"
    assert text(f"<main><h1>Pairs</h1>{jump}</main>") == "It counts. It adds."


@pytest.mark.parametrize("name", ["Back to top", "top", "↑"])
def test_heading_that_links_to_itself_stays(name):
    heading = f"<h2 id='top'><a href='#top'>{name}</a></h2>"
    page = read_html(f"<main><h1>Parts</h1><p>All parts.</p>{heading}<p>It scrolls.</p></main>")
    assert page.sections[-1].headings == ("Parts", name)


def test_link_to_skip_the_menu_is_removed():
    assert text("<body><a href='#c'>Skip to content</a><h1 id='c'>Pairs</h1><p>It counts.</p></body>") == "It counts."


def test_brackets_around_a_link_to_the_top_are_removed():
    assert text("<main><h1>Pairs</h1><p>It counts. (<a href='#'>top</a>)</p></main>") == "It counts."


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>Press <a href='#k'>↑</a></p><p>Press Alt+<a href='#k'>↑</a>.</p>", "Press ↑\n\nPress Alt+↑."),
        ("<ul><li><a href='#up'>↑</a></li><li><a href='ps.html'>ps</a></li><li><a href='#top'>top</a></li></ul>",
         "- ↑\n- ps\n- top"),
        ("<p>Commands: <a href='#gg'>go to top</a>, <a href='#G'>go to end</a></p>",
         "Commands: go to top, go to end"),
        ("<p>You can <a href='#s'>jump to search</a> with a key.</p>", "You can jump to search with a key."),
    ],
)  # fmt: skip
def test_names_of_keys_and_commands_that_look_like_jumps_stay(html, shown):
    assert text(f"<main><h1>Pairs</h1><p>It counts.</p>{html}</main>") == f"It counts.\n\n{shown}"


def test_name_that_looks_like_a_jump_stays():
    html = "<p>Run <a href='#top'>top</a> to see it.</p><ul><li><a href='#take'>↑</a> Take</li></ul>"
    assert text(f"<main><h1>Pairs</h1>{html}</main>") == "Run top to see it.\n\n- ↑ Take"


PAGERS = [
    "<ul><li><a accesskey='p' href='a.html'>Prev 1. Intro</a></li><li><a href='i.html'>Home</a></li></ul>",
    "<div><a rel='prev' href='a.html'>Intro</a> | <a rel='next' href='b.html'>Cars</a></div>",
    "<div><img src='line.png' alt=''><a rel='next' href='b.html'>Cars</a></div>",
]


@pytest.mark.parametrize("pager", PAGERS)
def test_marked_links_to_the_next_page_are_removed(pager):
    assert text(f"<body>{pager}<h1>Pairs</h1><p>It counts.</p>{pager}</body>") == "It counts."
    kept = text("<body><h1>Pairs</h1><p>It counts. See the <a rel='next' href='b.html'>next part</a> too.</p></body>")
    assert kept == "It counts. See the next part too."


@pytest.mark.parametrize("shown", ["<pre>1 + 1 = 2</pre>", "<img src='a.png' alt='1 + 1 = 2'>"])
def test_listings_and_pictures_next_to_a_pager_stay(shown):
    pager = "<p><a rel='next' href='b.html'>Next</a></p>"
    words = text(f"<body><h1>Pairs</h1><p>It counts.</p><div>{shown}{pager}</div></body>")
    assert list(filter(None, words.split("\n"))) == ["It counts.", "1 + 1 = 2"]


BOOK = "<h1>Pairs</h1><p>It counts the pairs of words in the text, one after another.</p>{}<p>It also adds them.</p>"
REMARK = "In practice, few people count the pairs. Most of them are content with a guess, which is often good enough."


def test_sidebar_in_the_text_of_a_book_is_kept_but_not_a_menu():
    assert REMARK in text(f"<body>{BOOK.format(f'<div class=sidebar><p><b>Tip</b></p><p>{REMARK}</p></div>')}</body>")
    menu = "<div class='sidebar'><ul><li><a href='a.html'>Intro</a></li><li><a href='b.html'>Cars</a></li></ul></div>"
    assert "Cars" not in text(f"<body>{BOOK.format(menu)}</body>")
    column = f"<div class='col'>{BOOK.format('')}</div><div class='sidebar'><p>{REMARK}</p></div>"
    assert REMARK not in text(f"<body>{column}</body>")


def test_menus_are_known_by_the_end_of_their_class_names():
    menu = "<div class='wiki-navbox'><a href='a.html'>Intro</a>, <a href='b.html'>Cars</a> (old)</div>"
    assert text(f"<main><h1>Pairs</h1>{menu}<p>It counts.</p></main>") == "It counts."
    rows = "".join(
        f"<tr><td><a href='{n}.html'><span class='k'>{name}</span></a></td></tr>" for n, name in enumerate(NAMES)
    )
    names = f"<div class='t-navbar'><a href='a.html'>Up</a><table>{rows}</table></div>"  # like code, but a menu
    assert text(f"<main><h1>Pairs</h1>{names}<p>It counts.</p></main>") == "It counts."
    example = (
        "<div class='example-navbar'><p>It shows how to set up a menu, with its <a href='x.html'>links</a>.</p></div>"
    )
    assert "how to set up" in text(f"<main><h1>Pairs</h1>{example}<p>It counts.</p></main>")
    page = "<h1>Pairs</h1><p>Start.</p><ul><li><a href='a.html'>Install it now</a></li></ul>"
    assert "Start." in text(f"<main><div class='page has-breadcrumbs'>{page}</div></main>")


def test_name_of_the_page_in_a_sentence_stays_although_it_leads_nowhere():
    sentence = "<p>This <a class='mw-selflink selflink'>Crop tab</a> has <b class='selflink'>options</b>.</p>"
    assert text(f"<main><h1>Crop tab</h1>{sentence}</main>") == "This Crop tab has options."


def test_class_names_in_capitals_are_read_like_others():
    head = '<DIV CLASS="NAVHEADER"><TABLE><TR><TH>Manual</TH></TR><TR><TD><A HREF="a">Prev</A></TD></TR></TABLE></DIV>'
    page = f'<BODY>{head}<DIV CLASS="SECT1"><H1><A NAME="X">Pairs</A></H1><P>It counts.</P></DIV></BODY>'
    assert text(page) == "It counts."
