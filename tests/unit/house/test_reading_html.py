"""The HTML reading benchmark: comparing two texts, and Chromium's report of a page's visible text."""

import pytest
from kit.browser import needs_browser

from benchmarks.reading.chromium import Chromium
from benchmarks.reading.compare import Read, Share, Shown, compare, words
from benchmarks.reading.ours import as_read, spread
from benchmarks.reading.sites import all_sites, served
from benchmarks.reading_html import lines_of_links, repeated_lines, shown_of
from pipelines.indexing.reading.read import read_page
from pipelines.records import Page


def read_text(text, **more):
    return Read([(text, False)], **more)


def lines(*texts):
    return Shown([(text, False) for text in texts])


def test_equal_texts_agree_in_everything():
    found = compare(lines("One two three.", "Four"), read_text("One two three. Four"))
    assert (found.recall, found.precision, found.order, found.lost) == (Share(4, 4), Share(4, 4), Share(4, 4), 0)


def test_missing_words_lower_recall_and_extra_words_lower_precision():
    found = compare(lines("keep this lost word here"), read_text("keep this added here too"))
    assert (found.recall, found.precision) == (Share(3, 5), Share(3, 5))
    assert found.missing == ["keep this [lost word] here"]
    assert found.extra == ["keep this [added] here too", "added here [too]"]


def test_word_elsewhere_does_not_replace_a_missing_one():
    found = compare(lines("the cat sat on a mat", "end"), read_text("cat sat on a mat end the"))
    assert (found.recall, found.precision) == (Share(6, 7), Share(6, 7))


def test_run_of_words_elsewhere_is_moved_not_missing():
    found = compare(
        lines("one two three four", "five six seven eight nine"),
        read_text("five six seven eight nine one two three four"),
    )
    assert (found.recall.share, found.precision.share, found.order) == (1.0, 1.0, Share(5, 9))


@pytest.mark.parametrize(
    ("shown", "read"), [("H 2 O is", "H2O is"), ("get items is", "getitems is"), ("ab is", "a b is")]
)
def test_equal_letters_with_other_spaces_are_not_missing(shown, read):
    found = compare(lines(shown), read_text(read))
    assert (found.lost, found.spaced > 0) == (0, True)


def test_optional_words_are_neither_missing_nor_extra():
    shown = Shown([("See also list", True), ("Text here", False)])
    assert compare(shown, read_text("Text here")).lost == compare(shown, read_text("See also list Text here")).lost == 0
    assert compare(shown, read_text("Text")).recall == Share(1, 2)
    named = Read([("x.Text", True), ("Text here", False)])
    assert compare(shown, named).precision == Share(2, 2)


def test_heading_does_not_take_the_words_of_the_signature_below_it():
    shown = lines("procedure (write-char char [out])", "Writes it.")
    ours = Read([("write-char", True), ("(write-char char [out])", False), ("Writes it.", False)])
    assert compare(shown, ours).extra == []


def test_joined_superscript_is_a_different_number():
    shown = Shown([("up to 2^32 rows", False)], raised=[("2", "32")])
    assert compare(shown, read_text("up to 232 rows")).raised == Share(0, 1)
    assert [
        compare(shown, read_text(f"up to {power} rows")).raised.right for power in ("2^32", "2³²", "2^{32}", "2**32")
    ] == [1] * 4
    assert words("2³²") == words("2^32") == ["2", "32"]


def test_code_is_compared_line_by_line_without_its_indentation():
    shown = Shown([], code=["def f():", "    return 1", "x = 2"])
    found = compare(shown, read_text("", code=["def f():", "  return 1", "x=2 y"]))
    assert found.code == Share(2, 3)
    assert found.wrong["code"] == ["x = 2"]


def test_listing_joined_into_one_line_has_no_correct_line():
    assert compare(Shown([], code=["a", "b"]), read_text("", code=["a b"])).code == Share(0, 2)


def test_cells_are_compared_with_their_neighbors_in_the_row():
    shown = Shown([], tables=[[["name", "type"], ["id", "✓"], ["url", "text"]]])
    assert compare(shown, read_text("name | type\nid | ✓\nurl | text", rows=["id | ✓"])).cells == Share(6, 6)
    assert compare(
        shown, read_text("name | type\nid |\nurl | text", rows=["name | type", "id |", "url | text"])
    ).cells == Share(5, 6)


def test_link_has_its_words_and_its_target():
    shown = Shown([], targets=[("the guide", "https://x.org/a/guide.html"), ("home", "https://x.org/")])
    read = read_text("", targets=[("the guide", "https://x.org/guide.html"), ("home", "https://x.org")])
    assert compare(shown, read).targets == Share(1, 2)


def test_heading_shared_by_several_sections_is_read_once():
    page = b"<main><h1>T</h1><h2 id=a>A</h2><h3 id=b>B</h3><p>one</p><h3 id=c>B</h3><p>two</p></main>"
    assert as_read(read_page(Page("https://x.org/", page))).text.split() == ["T", "A", "B", "one", "B", "two"]


def test_lines_on_half_of_the_pages_are_layout_only_at_the_ends():
    def page(*texts):
        return {
            "lines": [{"t": t, "k": "text", "o": False} for t in texts],
            "base": "",
            "links": [],
            "tables": [],
            "sups": [],
            "outside": [],
        }

    pages = [page("Banner", f"own {n}", "Note", f"more {n}", "Footer") for n in range(9)]
    shown = shown_of(pages[0], "", repeated_lines(pages))
    assert [optional for _, optional in shown.lines] == [True, False, False, False, True]


def test_line_of_links_to_other_pages_is_a_link_list():
    def line(text, kind="text"):
        return {"t": text, "k": kind, "o": False}

    links = [[name, f"http://h/{name}", False] for name in ("a", "b c", "d", "e", "f", "g")]
    lines = [line("See a , b c, d."), line("a, b c, d,"), line("e, f"), line("g", "code")]
    assert lines_of_links(lines, links) == {1}
    assert lines_of_links([line("e, f, g"), line("e, f, g")], links) == {0}


def test_pages_are_spread_evenly():
    assert spread([*"abcdefgh"], 4) == [*"aceg"]
    assert spread([*"ab"], 4) == [*"ab"]


def test_corpus_has_the_promised_size():
    sites = all_sites()
    assert len(sites) >= 30
    assert len({site.generator.split(" (")[0] for site in sites}) >= 15


PAGE = """<!doctype html><meta charset=utf-8><title>T</title><style>
.gone { display: none } pre.wide { display: inline-block }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0,0,0,0) }</style>
<body><div>
<div style="float:left; width:200px">Side <a href=o.html>menu</a> of the site that is long</div>
<div style="margin-left:220px"><p><a rel=prev href=p.html>Prev</a> | <a rel=next href=n.html>Next</a></p>
<h1 id=t>Title <a href="#t">¶</a></h1>
<div>Contents</div>
<ul><li><a href="#a">First part</a></li><li><a href="#b">Second part</a></li><li><a href="#c">Third</a></li></ul>
<p>There are 2<sup>32</sup> rows. <span class=gone>secret</span><span class=sr>only said</span>
<button>Copy</button></p>
<h2 id=a>First part</h2><details><summary>Why</summary><p>Because</p></details>
<pre class=wide>a = 1
  b = 2</pre>
<h2 id=b>Second part</h2>
<table><tr><th>Name</th><th>Is it</th></tr><tr><td>x</td><td><img src=y.png alt=yes></td></tr></table>
<h2 id=c>Third</h2><ol start=3><li>Go <a href="sub/g.html">to it</a></li></ol>
</div></div>"""
SHOWN = [
    *("Title", "There are 2^32 rows.", "First part", "Why", "Because", "a = 1", "  b = 2"),
    *("Second part", "Name", "Is it", "x", "yes", "Third", "3. Go to it"),
]


@needs_browser
@pytest.mark.slow
def test_chromium_reports_the_visible_text(tmp_path):
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    with served(tmp_path) as base, Chromium(tmp_path / "cache") as chromium:
        url = f"{base}/page.html"
        found = chromium.shown({url: tmp_path / "page.html"})[url]
    shown = [line["t"].replace("\u200a", "") for line in found["lines"]]
    assert shown == SHOWN
    assert [line["t"] for line in found["lines"] if line["k"] == "code"] == ["a = 1", "  b = 2"]
    assert found["tables"] == [[["Name", "Is it"], ["x", "yes"]]]
    assert found["sups"] == [["2", "32"]]
    assert found["links"] == [["to it", f"{base}/sub/g.html", False]]
