"""Tabs made of radio buttons stay in their section: each panel follows the words of its label."""

import pytest

from tests.kit.sectioning import read_html, text_of


def text(html: str) -> str:
    (section,) = read_html(
        f'<main><section id="start"><h1>Start</h1><p>Run it:</p>{html}<p>It starts.</p></section></main>'
    ).sections
    assert section.anchors == ("start",)
    return text_of(section)


def radio(name: str, tab: int) -> str:
    return f'<input type="radio" name="{name}" id="{name}-{tab}">'


def label(name: str, tab: int, words: str, title: str = "") -> str:
    return f'<label for="{name}-{tab}" title="{title}">{words}</label>'


TABS = {
    "labels before all panels, whose words are their titles": (
        f"<div>{radio('c', 1)}{label('c', 1, '&#xf17c/&#xf179', 'Linux/macOS')}"
        f"{radio('c', 2)}{label('c', 2, '&#xf17a', 'Windows')}"
        "<section id='c-1'><pre>$ run</pre></section><section id='c-2'><pre>&gt; run</pre></section></div>"
    ),
    "labels between the panels": (
        f"<div>{radio('c', 1)}{label('c', 1, 'Linux/macOS')}<div><pre>$ run</pre></div>"
        f"{radio('c', 2)}{label('c', 2, 'Windows')}<div><pre>&gt; run</pre></div></div>"
    ),
    "labels in a box, panels in another": (
        f"<div>{radio('c', 1)}{radio('c', 2)}<div>{label('c', 1, 'Linux/macOS')}{label('c', 2, 'Windows')}</div>"
        "<div><div id='a'><pre>$ run</pre></div><div id='b'><pre>&gt; run</pre></div></div></div>"
    ),
    "buttons and labels in a box, panels after it": (
        f"<div><div>{radio('c', 1)}{label('c', 1, 'Linux/macOS')}{radio('c', 2)}{label('c', 2, 'Windows')}</div>"
        "<div><div><pre>$ run</pre></div><div><pre>&gt; run</pre></div></div></div>"
    ),
    "a box for each tab": (
        f"<ul><li>{radio('c', 1)}{label('c', 1, 'Linux/macOS')}<div><pre>$ run</pre></div></li>"
        f"<li>{radio('c', 2)}{label('c', 2, 'Windows')}<div><pre>&gt; run</pre></div></li></ul>"
    ),
    "a line that slides under the labels": (
        f"<div>{radio('c', 1)}{label('c', 1, 'Linux/macOS')}{radio('c', 2)}{label('c', 2, 'Windows')}<span></span>"
        "<style>a{}</style><div><pre>$ run</pre></div><div><pre>&gt; run</pre></div></div>"
    ),
}


@pytest.mark.parametrize("html", TABS.values(), ids=TABS)
def test_tab_panel_stays_in_its_section_under_its_label(html: str):
    assert text(html) == "Run it:\n\nLinux/macOS:\n$ run\nWindows:\n> run\nIt starts."


def test_nested_tabs_keep_their_own_labels():
    inner = f"{radio('d', 1)}{label('d', 1, 'pip')}<div>p</div>{radio('d', 2)}{label('d', 2, 'uv')}<div>u</div>"
    outer = f"{radio('c', 1)}{label('c', 1, 'A')}<div>%s</div>{radio('c', 2)}{label('c', 2, 'B')}<div>b</div>"
    html = f"<div>{outer % f'<div>{inner}</div>'}</div>"
    assert text(html) == "Run it:\n\nA:\n\npip: p\n\nuv: u\n\nB: b\n\nIt starts."


def test_single_tab_is_a_tab():
    assert text(f"<div>{radio('c', 1)}{label('c', 1, 'pip')}<div>p</div></div>") == "Run it:\n\npip: p\n\nIt starts."


def test_question_with_choices_is_no_tab_set():
    choices = f"<form>{radio('c', 1)}{label('c', 1, 'Yes')}<br>{radio('c', 2)}{label('c', 2, 'No')}</form>"
    assert text(f"{choices}<p>One.</p><p>Two.</p>") == "Run it:\n\nYes\nNo\n\nOne.\n\nTwo.\n\nIt starts."


def test_thousands_of_sibling_tab_sets_take_no_quadratic_time():
    sets = "".join(f"{radio(f'n{tab}', 1)}{label(f'n{tab}', 1, 'x')}" for tab in range(20_000))
    assert "x" in text(sets)
