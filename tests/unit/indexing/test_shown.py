"""Visible parts of a page are read: exponents, check marks, lines of code; hidden parts are not."""

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.page.plain import plain
from pipelines.page.tree import Paragraph, Span
from pipelines.records import Page
from tests.kit.sectioning import read_html, text_of

HIDDEN = "secret words"


def text(body: str) -> str:
    return text_of(*read_html(f"<html><body><main><h1>Title</h1>{body}</main></body></html>").sections)


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("2<sup>32</sup> rows", "2^32 rows"),
        ("10<sup>-6</sup> s", "10^-6 s"),
        ("x<sub>i</sub><sup>2</sup>", "x_i^2"),
        ("2<sup>n-1</sup>", "2^(n-1)"),
        ("(a+b)<sup>2</sup>", "(a+b)^2"),
        ("H<sub>2</sub>O", "H2O"),
        ("the 1<sup>st</sup> of Acme<sup>TM</sup>", "the 1st of AcmeTM"),
        ("see it<sup><a href='/notes'>3</a></sup>.", "see it [3]."),
        ("see it<a href='#n'><sup>4</sup></a>.", "see it [4]."),
        ("see it<sup class='footnote'>[a]</sup>.", "see it [a]."),
        ("<a href='#pop'>pop: Object<sup>?</sup></a>", "pop: Object?"),
        ("see it<sup class='fn'>7<span class='fn-text'>Not on Windows.</span></sup>.", "see it [7: Not on Windows.]."),
        ("it<sup>a<i>Since 2.0 in all of them.</i></sup> is", "it [a: Since 2.0 in all of them.] is"),
    ],
)
def test_raised_number_is_an_exponent_but_a_footnote_mark_is_not(html, shown):
    assert text(f"<p>{html}</p>") == shown


def test_exponent_is_kept_in_code_cells_and_headings_too():
    assert text("<pre>2<sup>8</sup> = 256</pre>") == "2^8 = 256"
    assert text("<pre>x<sub>i</sub> + 2<sup>a+b</sup> + e<sup><b>n</b></sup></pre>") == "x_i + 2^(a+b) + e^n"
    assert text("<table><tr><th>A<th>B<tr><td>int<td>2<sup>31</sup>-1</table>").endswith("2^31-1")
    (section,) = read_html("<main><h1>Up to 2<sup>32</sup></h1><p>Words.</p></main>").sections
    assert section.headings == ("Up to 2^32",)


@pytest.mark.parametrize("tag", ["s", "del", "strike"])
def test_struck_text_is_marked_as_struck(tag):
    (section,) = read_html(f"<main><h1>T</h1><p>It costs <{tag}>20</{tag}> 25 euros.</p></main>").sections
    (paragraph,) = section.content
    assert isinstance(paragraph, Paragraph) and paragraph.spans[1] == Span("20", style="strike")
    assert plain(paragraph.spans) == "It costs ~~20~~ 25 euros."


@pytest.mark.parametrize(
    "attributes",
    ["hidden", "style='display:none'", "style='display: none !important'", "aria-hidden='true'", "class='hidden'",
     "class='d-none'", "style='position:absolute; left:-9999px'", "style='visibility: hidden'"],
)  # fmt: skip
def test_hidden_text_is_removed(attributes):
    assert text(f"<p>Seen words.</p><p>More words.</p><div {attributes}>{HIDDEN}</div>") == "Seen words.\n\nMore words."


@pytest.mark.parametrize(
    "html",
    [
        f"<button aria-expanded='false'>Why?</button><div hidden>{HIDDEN}</div>",
        f"<p><a href='#x'>More</a></p><div id='x' style='display:none'>{HIDDEN}</div>",
        f"<button aria-controls='y'>More</button><p>a</p><div id='y' class='hidden'>{HIDDEN}</div>",
        f"<div role='tabpanel' hidden>{HIDDEN}</div>",
        f"<details><summary>More</summary><div aria-hidden='true'>{HIDDEN}</div></details>",
        f"<div class='hidden md:block'>{HIDDEN}</div>",
        f"<aside aria-label='{HIDDEN}'><p aria-hidden='true'>{HIDDEN}</p><p>Mind it.</p></aside>",
    ],
)
def test_expandable_and_labeled_text_is_read(html):
    assert HIDDEN in text(f"<p>Seen words of the page.</p>{html}")


def test_page_revealed_by_its_script_is_read():
    assert HIDDEN in text(f"<div style='visibility:hidden'><p>{HIDDEN}</p></div>")


def test_question_on_a_button_comes_before_its_answer():
    html = "<button class='accordion'>How long?</button><div class='panel'><p>An hour.</p></div><button>Copy</button>"
    assert text(html) == "How long?\n\nAn hour."


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("<i class='fa fa-times' aria-hidden='true'></i>", "✗"),
        ("<i class='bi bi-check'></i>", "✓"),
        ("<svg aria-label='No' role='img'><path/></svg>", "No"),
        ("<svg role='img'><title>Yes</title><path/></svg>", "Yes"),
        ("<span class='icon' title='Available'></span>", "Available"),
        ("<abbr title='Full'><span class='icon-yes'></span></abbr> 52", "Full 52"),
        ("<img src='no.svg' title='None'>", "None"),
        ("<input type='checkbox' checked disabled>", "[x]"),
        ("<input type='checkbox' disabled>", "[ ]"),
        ("<i class='fa fa-check' aria-hidden='true'></i> In Europe", "In Europe"),
    ],
)
def test_cell_contains_the_meaning_of_its_icon(cell, shown):
    assert text(f"<table><tr><th>A<th>B<tr><td>x<td>{cell}</table>") == f"x | {shown}"


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ("<li data-inline-task-id='1' class='checked'><span>Test it</span>", "- [x] Test it"),
        ("<li data-inline-task-id='2'><span>Test it</span>", "- [ ] Test it"),
        ("<li data-checked='true'><p>Test it</p>", "- [x] Test it"),
        ("<li role='checkbox' aria-checked='false'>Test it", "- [ ] Test it"),
        ("<li><input type='checkbox' class='task-list-item-checkbox' checked> Test it", "- [x] Test it"),
    ],
)
def test_task_of_a_list_says_whether_it_is_done(item, shown):
    assert text(f"<ul>{item}</ul>") == shown


def test_ligature_words_of_an_icon_font_are_removed():
    html = "<p><i class='material-icons'>info</i> It is <a href='/x'>here <mat-icon>open_in_new</mat-icon></a>.</p>"
    assert text(html) == "It is here ."


def test_alternative_text_without_meaning_is_removed():
    html = "<p>One <img src='a.png' alt='No description has been provided for this image'> two.</p>"
    assert text(html) == "One two."


CHANGED = (
    "<span class='line'>a {</span>\n<span class='line diff remove'>  b</span>\n<span class='line diff add'>  c</span>"
)


def test_diff_lines_keep_their_signs_and_lose_their_line_numbers():
    assert text(f"<pre><code>{CHANGED}</code></pre>") == " a {\n-  b\n+  c"
    numbered = "<pre><code><div class='ec-line'><div class='gutter'><div class='ln'>1</div></div><div>x = 1</div></div>"
    assert text(f"{numbered}</code></pre>") == "x = 1"
    assert text("<pre><span class='line-number'>7</span>go()</pre>") == "go()"


@pytest.mark.parametrize(
    "html",
    [
        (
            "<table class='highlight'><tr><td class='blob-num'></td><td class='blob-code'>a</td></tr>"
            "<tr><td class='blob-num'></td><td class='blob-code'>  b</td></tr></table>"
        ),
        (
            "<div class='syntaxhighlighter'><table><tr><td class='gutter'><div class='line'>1</div></td>"
            "<td class='code'><div class='line'>a</div><div class='line'>  b</div></td></tr></table></div>"
        ),
        "<div class='geshi'><ol><li><div>a</div></li><li><div>  b</div></li></ol></div>",
        "<div style='white-space: pre'>a\n  b</div>",
        "<p><code>a<br>  b<br></code></p>",
    ],
)
def test_code_outside_pre_keeps_its_lines(html):
    assert text(f"<p>Words.</p>{html}") == "Words.\na\n  b"


def test_cell_spanning_to_the_table_end_keeps_the_columns():
    rows = "<tr><th>A<th>B<tr><td rowspan='0'>x<td>1<tr><td>2<tr><td>3"
    assert text(f"<table>{rows}</table>") == "x | 1\n | 2\n | 3"


def test_ruby_pronunciation_is_removed():
    assert text("<p><ruby>環境<rp>(</rp><rt>かんきょう</rt><rp>)</rp></ruby>です。</p>") == "環境です。"


def test_joiners_are_kept_if_they_are_spelling():
    assert text("<p>می\u200cخواهید a\u200cb क्\u200dष</p>") == "می\u200cخواهید ab क्\u200dष"


def test_xhtml_keeps_its_cdata_and_empty_elements():
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><h1>T</h1><pre><![CDATA[<a b="1"/>]]>'
        '</pre><p>One.</p><a id="e"/><p>Two.</p><div class="spacer"/><p>Three.</p></body></html>'
    )
    read = read_page(Page("https://x.org/p.xhtml", page.encode(), "application/xhtml+xml"))
    assert text_of(*read.sections) == '<a b="1"/>\nOne.\n\nTwo.\n\nThree.'


def test_elements_that_the_styles_of_the_page_hide_are_removed():
    styles = "/* ads */ .ad, #log { color: red; display: none } @media print { .seen { display: none } }"
    body = f"<p>Seen words.</p><p class='seen'>More words.</p><div class='ad'>{HIDDEN}</div><p id='log'>{HIDDEN}</p>"
    assert text(f"<style>{styles}</style>{body}") == "Seen words.\n\nMore words."


def test_hidden_elements_that_a_script_names_are_kept():
    opener = "<style>.tabcontent {display: none}</style><button onclick=\"show('lon')\">London</button>"
    assert HIDDEN in text(f"<p>Seen words.</p>{opener}<div id='lon' class='tabcontent'><p>{HIDDEN}</p></div>")
    longer = "<style>.log {display: none}</style><script>open('catalog')</script>"
    assert HIDDEN not in text(f"<p>Seen words.</p>{longer}<div class='log'><p>{HIDDEN}</p></div>")


def test_hidden_notes_that_pointing_at_them_shows_are_kept():
    styles = "<style>.note {display: none} .mark:hover .note {display: block}</style>"
    assert HIDDEN in text(f"{styles}<p>Seen words.<span class='mark'>*<span class='note'>{HIDDEN}</span></span></p>")


@pytest.mark.parametrize(
    "styles",
    [
        ".note {display: none} @media (min-width: 600px) { .note {display: block} }",
        ".note {display: none} body.ready .note {display: block}",
        ".note {display: none} #open:checked ~ .first {display: block}",
        ".note {visibility: hidden; animation: appear 1s forwards}",
        ".note {display: none} @media screen, print { .note {display: block} }",
        ".note {display: none} .note { .ready & {display: block} }",
    ],
)
def test_hidden_elements_that_another_rule_shows_are_kept(styles):
    assert HIDDEN in text(f"<style>{styles}</style><p>Seen words.</p><p class='note first'>{HIDDEN}</p>")


def test_styles_of_a_page_are_read_as_browsers_with_scripts_do():
    kept = f"<p>Seen words.</p><p class='note' style='display: block'>{HIDDEN}</p>"
    assert HIDDEN in text(f"<style>.note {{display: none}}</style>{kept}")
    assert HIDDEN in text(f"<noscript><style>.tip {{display: none}}</style></noscript><p class='tip'>{HIDDEN}</p>")
    assert HIDDEN not in text(
        f"<style>@import 'a.css'; .tip {{display: none}}</style><p>Seen words.</p><p class='tip'>{HIDDEN}</p>"
    )


@pytest.mark.parametrize(
    "control", ["<a href='#'>Show</a>", "<a href='javascript:show()'>Show</a>", "<button>A</button>"]
)
def test_panels_next_to_each_other_after_a_control_are_kept(control):
    styles = "<style>.solution {display: none}</style>"
    panels = f"<div class='solution'><p>One.</p></div><div class='solution'><p>{HIDDEN}</p></div>"
    assert HIDDEN in text(f"{styles}<p>Seen words.</p>{control}{panels}")


def test_hidden_help_longer_than_a_short_page_is_not_the_page():
    assert text(f"<div style='display:none'><p>{HIDDEN * 40}</p></div><p>{'Seen words. ' * 5}</p>").startswith("Seen")


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("<mi>r</mi><msup><mi>r</mi><mn>2</mn></msup>", "rr^2"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>", "(a+b)/2"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", "√(x+1)"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", "x^(1/3)"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"),
        ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>",
         "∑_(i=1)^n i"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", "x"),
        ("<mtable><mtr><mtd>1</mtd><mtd>0</mtd></mtr><mtr><mtd>2</mtd></mtr></mtable>", "[1, 0; 2]"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a, b)"),
        ("<semantics><mi>y</mi><annotation encoding='x'>why</annotation></semantics>", "y"),
    ],
)  # fmt: skip
def test_formula_without_tex_keeps_its_fractions_and_exponents(formula, shown):
    assert text(f"<p>So <math>{formula}</math> is.</p>") == f"So {shown} is."


def test_quoted_words_have_quotation_marks():
    assert text("<p>He said <q>hello <b>there</b></q> twice.</p>") == "He said “hello there” twice."


def test_lines_of_code_in_boxes_are_a_listing():
    (section,) = read_html("<main><h1>T</h1><div><code><div>a = 1</div><div>b = 2</div></code></div></main>").sections
    assert [block.text for block in section.content] == ["a = 1\nb = 2"]


def test_button_within_a_sentence_is_a_word_of_it():
    assert text("<p>Click <button>Save</button> to store it.</p>") == "Click Save to store it."
    assert text("<p>Click <button>Save</button>.</p>") == "Click Save."
    assert text("<p>点击<button>保存</button>。</p>") == "点击保存。"
    assert text("<p>Install it. <button>Copy</button></p>") == "Install it."


def test_element_with_the_role_of_a_heading_is_one():
    (section,) = read_html("<main><div role='heading' aria-level='2' id='r'>Run</div><p>Words.</p></main>").sections
    assert (section.headings, section.anchor) == (("Run",), "r")
    cells = "<td role='heading' aria-level='3'>Name</td><td>Use</td></tr><tr><td>run</td><td>It runs.</td>"
    assert text(f"<table><tr>{cells}</tr></table>") == "Name | Use\nrun | It runs."


def test_table_around_a_page_is_not_read_across():
    menu = "<td><a href='a.html'>Home</a><br><a href='b.html'>News</a></td>"
    page = f"<table><tr>{menu}<td><h1>Acme</h1><p>It runs.</p><h2><a name='i'>Install</a></h2><p>Run it.</p></td></tr>"
    sections = read_html(f"<body>{page}</table></body>").sections
    assert [part.headings for part in sections][-2:] == [("Acme",), ("Acme", "Install")]
    assert sections[-1].anchor == "i"
