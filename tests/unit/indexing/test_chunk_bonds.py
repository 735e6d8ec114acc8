"""Related text shares a chunk: a lead-in and its code or list, a note, a term and its definition."""

import random
from collections.abc import Sequence
from html import escape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.embedding.load import load_tokenizer
from pipelines.page.cut.atoms import APART, INTRODUCED, Atom, join_atoms, to_atoms
from pipelines.page.cut.packing import A_CHUNK, BARE, UNEVEN, Packer, Repeated
from pipelines.page.cut.weights import count_characters
from pipelines.page.tree import Document
from pipelines.records import Chunk
from tests.kit.blocks import Block, blocks_of, under
from tests.kit.plain_chunks import PlainChunker
from tests.kit.sectioning import read_html

MINILM = load_tokenizer("all-MiniLM-L6-v2")


def read(html: str) -> Document:
    return read_html(f"<main><h1 id='t'>Title</h1>{html}</main>")


def blocks(html: str) -> tuple[Block, ...]:
    return blocks_of(read(html).sections[0])


def chunks(html: str, size: int = 0) -> list[Chunk]:
    return PlainChunker(MINILM, size)(read(html))


def texts(html: str, size: int = 0) -> list[str]:
    return [chunk.text for chunk in chunks(html, size)]


def words(count: int, seed: int = 0) -> str:
    chance = random.Random(seed)
    sentence = [chance.choice(["the", "index", "holds", "a", "page", "of", "text"]) for _ in range(count - 1)]
    return " ".join(["So", *sentence]) + "."


def paragraph(count: int, seed: int = 0) -> str:
    return f"<p>{words(count, seed)}</p>"


# -- marks set by the reader


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ('<ol start="9"><li>a</li><li value="20">b</li><li>c</li></ol>', "9. a\n20. b\n21. c"),
        ("<ol reversed><li>a</li><li>b</li></ol>", "2. a\n1. b"),
        ('<ol type="a"><li>a</li><li>b</li></ol>', "a. a\nb. b"),
        ('<ol class="lowerroman"><li>a</li><li>b</li></ol>', "i. a\nii. b"),
        ("<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>", "1. a\n  - b\n2. c"),
    ],
)
def test_items_have_the_numbers_shown_on_the_page(html: str, text: str):
    assert "\n".join(block.text for block in blocks(html)) == text


@pytest.mark.parametrize("listing", ["<pre>code</pre>", "<ul><li>item</li></ul>", "<table><tr><td>a<td>b</table>"])
def test_lead_in_is_marked_on_the_block_it_introduces(listing: str):
    assert under(blocks(f"<p>Do this:</p>{listing}")[-1]) == ("Do this:",)
    assert under(blocks(f"<p>Table 1. Names</p>{listing}")[-1]) == ("Table 1. Names",)
    assert under(blocks(f"<p>That was it.</p>{listing}")[-1]) == ()


def test_note_item_or_term_is_marked_on_its_remaining_blocks():
    note = '<div class="admonition note"><p class="admonition-title">Note</p><p>One.</p><p>Two.</p></div><p>After.</p>'
    assert [(b.text, under(b)) for b in blocks(note)] == [("Note", ()), ("One.\n\nTwo.", ("Note",)), ("After.", ())]
    item = blocks("<ul><li><p>Install</p><pre>pip</pre></li><li>Run</li></ul><pre>x</pre>")
    assert [(b.text, under(b)) for b in item] == [("- Install", ()), ("pip", ("- Install",)), ("- Run", ()), ("x", ())]
    term = blocks("<dl><dt>columns</dt><dd>Sets the width.</dd></dl>")
    assert [(b.text, under(b)) for b in term] == [("columns:", ()), ("Sets the width.", ("columns:",))]


def test_indented_text_is_under_the_label_before_it():
    quoted = "<p><code>logfile</code></p><blockquote><p>The path.</p><p>Default: AUTO</p></blockquote>"
    label, first, rest = blocks(quoted)
    assert (label.text, under(label)) == ("logfile", ())
    assert (first.text, under(first)) == ("The path.", ("logfile",))
    assert (rest.text, under(rest)) == ("Default: AUTO", ("logfile", "The path."))
    assert [under(b) for b in blocks(quoted.replace("</code>", "</code> is one."))] == [(), ("The path.",)]


def test_heading_in_an_item_starts_a_section_without_its_marks():
    document = read("<ul><li><p>Item</p><h2 id='b'>B</h2><p>Text.</p></li></ul>")
    assert blocks_of(document.sections[1]) == (Block("prose", "Text."),)


# -- text that the chunker keeps together


CODE = "\n".join(f"call_{n}(argument)" for n in range(20))


def test_lead_in_stays_with_its_code():
    found = texts(f"{paragraph(150)}<p>For example:</p><pre>{CODE}</pre>{paragraph(60)}")
    assert len(found) == 2
    assert found[1].startswith(f"For example:\n\n{CODE}")


@pytest.mark.parametrize("last", ["Then run this:", "The example below does so."])
def test_last_sentence_of_a_long_paragraph_stays_with_its_code(last: str):
    found = texts(f"<p>{words(80)} {words(80, 1)} {last}</p><pre>{CODE}</pre>")
    assert any(text.startswith(f"{last}\n\n{CODE}") for text in found)


def test_caption_below_a_listing_stays_with_it():
    for text in texts(f"{paragraph(110)}<pre>{CODE}</pre><p>Listing 7-1: How to call</p>{paragraph(120, 1)}"):
        assert (CODE in text) == ("Listing 7-1: How to call" in text)


def test_later_parts_of_long_code_repeat_the_lead_in_and_their_function():
    body = "\n".join(f"    value_{n} = compute(value_{n - 1})" for n in range(60))
    first, *later = texts(f"<p>{words(30)} This is the training loop:</p><pre>def train(config):\n{body}</pre>")
    assert "This is the training loop:\n\ndef train(config):\n    value_0" in first
    assert later
    for text in later:
        assert text.startswith("This is the training loop:\n\ndef train(config):\n…\n    value_")


def test_later_parts_of_a_long_list_repeat_the_lead_in():
    items = "".join(f"<li>{words(20, n)}</li>" for n in range(30))
    first, *later = texts(f"<p>These are the rules:</p><ol>{items}</ol>")
    assert first.startswith("These are the rules:\n\n1. So")
    assert later
    assert all(text.startswith("These are the rules:\n…\n") and text[23].isdigit() for text in later)


def test_long_code_is_cut_between_its_functions():
    functions = [f"def f{n}(x):\n    y = x + {n}\n    z = y + {n}\n\n    return y + z" for n in range(30)]
    found = texts("<pre>" + "\n\n\n".join(functions) + "</pre>")
    assert len(found) > 2
    assert [part for text in found for part in text.split("\n\n\n")] == functions


def test_terminal_session_is_cut_before_a_command():
    session = "\n".join(f">>> f({n})\n{n}\n{n + 1}" for n in range(80))
    found = texts(f"<pre>{escape(session)}</pre>")
    assert len(found) > 2
    assert all(text.startswith(">>> ") for text in found)


def test_definition_stays_with_its_term_and_a_cell_with_its_signature():
    entries = "".join(f"<dt>option_{n}</dt><dd>{words(30, n)}</dd>" for n in range(20))
    for text in texts(f"<p>Options:</p><dl>{entries}</dl>"):
        assert text.startswith("Options:\n")
        assert not text.endswith(":")
    rows = "".join(
        f"<tr><td><p>f{n} ( text ) → text</p><p>{words(30, n)}</p><pre>f{n}('a')\na</pre></td></tr>" for n in range(20)
    )
    for text in texts(f"<table>{rows}</table>"):
        assert text.startswith("f")
        assert text.endswith("\na")


def test_note_that_fits_is_not_split():
    note = f'<div class="note"><h3 class="title">Caution</h3>{paragraph(60, 1)}{paragraph(60, 2)}</div>'
    found = texts(f"{paragraph(110)}{note}{paragraph(100, 3)}")
    assert any(f"Caution\n\n{words(60, 1)}\n\n{words(60, 2)}" in text for text in found)


def test_signature_stays_with_the_start_of_its_description():
    term = "<dt class='sig py' id='f'><span class='descname'>f</span>(a)</dt>"
    entry = f"<dl>{term}<dd>{paragraph(120)}{paragraph(120, 1)}</dd></dl>"
    assert texts(entry)[0].startswith("f(a)\n\nSo")


def test_last_chunk_of_a_section_is_not_a_single_sentence():
    found = chunks("".join(paragraph(20, n) for n in range(16)))
    assert len(found) > 1
    assert min(chunk.tokens for chunk in found) > 0.5 * max(chunk.tokens for chunk in found)


# -- introductory sections


def test_section_with_one_introductory_sentence_lists_its_subsections():
    document = "<p>There are two ways:</p><h2 id='a'>By hand</h2><p>A.</p><h2 id='b'>By machine</h2><p>B.</p>"
    first, *rest = chunks(document)
    assert (first.anchor, first.text) == ("t", "There are two ways:\n\n- By hand\n- By machine")
    assert [chunk.text for chunk in rest] == ["A.", "B."]


def test_longer_section_lists_nothing():
    found = texts(f"{paragraph(100)}<h2 id='a'>By hand</h2><p>A.</p>")
    assert found == [words(100), "A."]


def test_short_section_starts_with_its_first_part_if_that_has_no_anchor():
    synopsis = (
        '<div class="refnamediv"><h2>CHECKPOINT</h2><p>CHECKPOINT — force a checkpoint</p></div>'
        '<div class="refsynopsisdiv"><h2>Synopsis</h2><pre>CHECKPOINT</pre></div>'
    )
    [chunk] = PlainChunker(MINILM)(read_html(f'<body><div class="refentry" id="C">{synopsis}</div></body>'))
    assert chunk.text == "CHECKPOINT — force a checkpoint\n\nCHECKPOINT"
    assert (chunk.anchor, chunk.headings) == ("C", ("CHECKPOINT", "Synopsis"))


# -- any page

prose_texts = st.lists(st.sampled_from(["One word.", "Two more words here.", "A lead-in:", "Caption"]), min_size=1)
inline = prose_texts.map(" ".join)
code_texts = st.lists(st.sampled_from(["def f():", "    x = 1", "", ">>> run", ")", "# note"]), min_size=1, max_size=30)
elements = st.recursive(
    st.one_of(
        inline.map(lambda text: f"<p>{text}</p>"),
        code_texts.map(lambda lines: f"<pre>{escape(chr(10).join(lines))}</pre>"),
        st.integers(1, 12).map(lambda n: f"<table><tr><th>A<th>B</tr>{'<tr><td>a<td>b</tr>' * n}</table>"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6).map(lambda items: "<ol>" + "".join(f"<li>{item}</li>" for item in items) + "</ol>"),
        st.lists(inner, max_size=3).map(
            lambda items: "<div class='note'><p class='admonition-title'>Note</p>" + "".join(items) + "</div>"
        ),
        st.tuples(inline, inner).map(lambda pair: f"<dl><dt>{pair[0]}</dt><dd>{pair[1]}</dd></dl>"),
    ),
    max_leaves=12,
)
pages = st.lists(elements, min_size=1, max_size=6).map("".join)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(pages, st.sampled_from([32, 48, 100]))
def test_nothing_is_lost_and_the_budget_is_kept_on_any_page(html: str, size: int):
    document = read(html)
    for chunk in PlainChunker(MINILM, size)(document):
        assert chunk.tokens <= size
    for section in document.sections:
        atoms = to_atoms(blocks_of(section))
        expected = squeezed("".join((block.header + block.text) for block in blocks_of(section)))
        assert squeezed(join_atoms(atoms)) == expected
        packs = Packer(size, 0, 2, count_characters)(atoms)
        assert squeezed("".join(join_atoms(pack.atoms) for pack in packs)) == expected
        assert max((len(pack.text) for pack in packs), default=0) <= size


@given(pages, st.sampled_from([60, 120, 400]))
def test_blocks_that_belong_together_share_a_chunk_if_they_fit(html: str, size: int):
    for section in read(html).sections:
        atoms = to_atoms(blocks_of(section))
        if any(len(atom.text) > size for atom in atoms):
            continue
        begins = {id(pack.atoms[0]) for pack in Packer(size, 0, 2, count_characters)(atoms)}
        for chain in chains(atoms):
            if len("".join(atom.gap + atom.text for atom in chain)) + len(chain) <= size:
                assert not begins & {id(atom) for atom in chain[1:]}


@given(pages, st.sampled_from([20, 60, 120, 400]))
def test_breaks_have_the_least_cost_on_any_page(html: str, size: int):
    packer = Packer(size, 0, 2, count_characters)
    for section in read(html).sections:
        atoms, weights = packer._cut_to_fit(to_atoms(blocks_of(section)))
        heads = packer._heads(atoms)
        assert packer._starts(atoms, weights, heads) == plain_starts(packer, atoms, weights, heads)


def plain_starts(packer: Packer, atoms: Sequence[Atom], weights: list[int], heads: list[Repeated]) -> list[int]:
    """Return the breaks of the cheapest packing, trying every pack that has one atom or fits the budget."""
    costs, starts = [0.0], [0]
    for end in range(1, len(atoms) + 1):
        ways: list[tuple[float, int]] = []
        for start in range(end):
            filled = sum(weights[start:end]) - (packer.gap if atoms[start].gap else 0)
            if filled <= packer.budget or start == end - 1:
                bare = BARE if filled > packer.budget - heads[start].weight else 0
                own = A_CHUNK + (atoms[start].cost if start else APART) + bare
                ways.append((costs[start] + own + UNEVEN * (1 - filled / packer.budget) ** 2, -start))
        cost, start = min(ways)
        costs.append(cost)
        starts.append(-start)
    return starts


def chains(atoms: list[Atom]) -> list[list[Atom]]:
    """Return the atoms in runs that should not be split."""
    starts = [n for n, atom in enumerate(atoms) if n == 0 or atom.cost < INTRODUCED]
    return [atoms[start:end] for start, end in pairwise([*starts, len(atoms)])]
