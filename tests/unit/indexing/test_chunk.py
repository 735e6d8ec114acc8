"""Chunks contain all text, stay within the model's limit, and keep their ids when other text changes."""

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.tokens import TokenCounter
from pipelines.page.cut.chunker import Chunker, InvalidChunkSize
from pipelines.page.cut.packing import split_words
from pipelines.page.flow import FlatKind
from pipelines.page.tree import Document, Section, Span, Table
from pipelines.records import Chunk
from tests.kit.blocks import Block, blocks_of, nodes_of
from tests.kit.plain_chunks import PlainChunker

URL = "https://docs.example/page.html"
MINILM = load_tokenizer("all-MiniLM-L6-v2")
WORDS = replace(load_tokenizer("hash:8"), max_tokens=40)


@dataclass(frozen=True)
class Bytes:
    """A byte-level model with special tokens and a prefix, where counts of parts add up to less than the whole."""

    identity: str = "bytes"
    max_tokens: int = 64
    chunk_prefix: str = "read: "

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [len((self.chunk_prefix + text).encode("utf-8", "replace")) // 2 + 3 for text in texts]


def section(*blocks: Block, anchor: str = "a", headings: tuple[str, ...] = ("Guide", "Part")) -> Section:
    return Section(URL, ("top", anchor), headings, nodes_of(*blocks))


def document(*sections: Section, title: str = "Guide") -> Document:
    return Document(URL, title, "en", sections)


def prose(text: str) -> Block:
    return Block("prose", text)


def sentences(count: int, word: str = "word") -> str:
    return " ".join(f"This is the {word} number {n} of them." for n in range(count))


def squeezed(text: str) -> str:
    return "".join(text.split())


def cut(*blocks: Block) -> list[str]:
    """Return the texts of the chunks of a section."""
    return [chunk.text for chunk in PlainChunker(MINILM)(document(section(*blocks)))]


# -- limits


HOSTILE = {
    "one endless word": "a" * 40_000,
    "one endless run of signs": "=" * 5_000,
    "Chinese without spaces": "漢字仮名交じり文" * 800,
    "emoji joined": "👩‍👩‍👧‍👦" * 500,
    "a sign that unfolds": "﷽" * 500,
    "lone surrogates and NUL": "\ud800 \x00 text " * 400,
    "only spaces between letters": "a b c " * 2_000,
    "endless indentation": " " * 50_000 + "x",
}


@pytest.mark.parametrize("kind", ["prose", "code", "table"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("counter", [MINILM, WORDS, Bytes()], ids=["minilm", "words", "bytes"])
def test_no_chunk_is_longer_than_the_model_reads(counter: TokenCounter, text: str, kind: FlatKind) -> None:
    chunks = PlainChunker(counter)(document(section(Block(kind, text))))
    assert [chunk.tokens for chunk in chunks] == counter.count_tokens([chunk.embed_text for chunk in chunks])
    assert max(chunk.tokens for chunk in chunks) <= counter.max_tokens
    assert max(len(chunk.text) for chunk in chunks) <= 16 * counter.max_tokens
    assert squeezed("".join(chunk.text for chunk in chunks)) == squeezed(text)


def test_too_long_heading_path_keeps_its_end_and_leaves_room_for_text() -> None:
    headings = ("Guide", sentences(200), "Last heading")
    [chunk, *_] = PlainChunker(MINILM)(document(section(prose(sentences(100)), headings=headings)))
    assert chunk.embed_text.startswith("Last heading\n")
    assert chunk.headings == headings


def test_too_long_single_heading_keeps_its_beginning() -> None:
    heading = sentences(200)
    chunks = PlainChunker(MINILM)(document(section(prose(sentences(60)), headings=(heading,)), title=""))
    path = chunks[0].embed_text.partition("\n")[0]
    assert heading.startswith(path)
    assert 60 < MINILM.count_tokens([path])[0] <= 256 // 3 + 2
    assert all(chunk.tokens <= 256 for chunk in chunks)


block_texts = st.text(st.characters(codec="utf-8", exclude_characters="…"), max_size=400) | st.lists(
    st.sampled_from(["word", "Sentence end. ", "\n", "\n\n", "    indented", "x" * 300, "文字。", "| cell |", " "]),
    max_size=60,
).map("".join)
prose_texts = block_texts.map(lambda text: f"{text}.")  # the final stop prevents repeated introductions
blocks = st.builds(Block, st.sampled_from(["code", "table"]), block_texts) | st.builds(prose, prose_texts)
documents = st.lists(
    st.builds(
        lambda anchor, headings, blocks: section(*blocks, anchor=anchor, headings=tuple(headings)),
        st.sampled_from("abc"),
        st.lists(st.text(max_size=40), min_size=2, max_size=2),  # neither is the other's parent
        st.lists(blocks, max_size=6),
    ),
    max_size=4,
).map(lambda sections: document(*sections))


@given(documents, st.sampled_from([MINILM, WORDS, Bytes()]), st.sampled_from([0, 32, 40]))
@example(document(section(prose("0" * 302 + "ࠀࠀ。"), Block("code", " 000"), headings=("", "0" * 29))), Bytes(), 0)
def test_all_text_is_kept_once_in_order_within_the_limit(document: Document, counter: TokenCounter, size: int) -> None:
    chunks = PlainChunker(counter, size)(document)
    expected = [block.text for section in document.sections for block in blocks_of(section)]
    own = (chunk.text.rpartition("…\n")[2] for chunk in chunks)  # without the repeated scope of a part of code
    assert squeezed("".join(own)) == squeezed("".join(expected))
    assert all(chunk.tokens <= (size or counter.max_tokens) for chunk in chunks)
    assert [chunk.tokens for chunk in chunks] == counter.count_tokens([chunk.embed_text for chunk in chunks])
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.text.strip() for chunk in chunks)
    assert chunks == PlainChunker(counter, size)(document)


def test_spaces_left_by_a_cut_do_not_become_a_listing() -> None:
    torn = document(section(prose("Words."), Block("code", f" {'0' * 100}")))
    chunks = Chunker(Bytes(max_tokens=200), 100, 0, "characters")(torn)
    assert [chunk.text for chunk in chunks] == ["Words.", f"```\n{'0' * 100}\n```"]


@given(documents, st.integers(0, 30))
def test_characters_limit_the_text_and_tokens_limit_the_model_input(document: Document, overlap: int) -> None:
    for chunk in PlainChunker(Bytes(max_tokens=200), 100, overlap, "characters")(document):
        assert len(chunk.text) <= 100
        assert chunk.tokens <= 200


@pytest.mark.parametrize("length", [97, 98, 99, 100, 101, 150, 200])
@pytest.mark.parametrize("last", ["", "a"])
def test_row_cut_between_two_cells_gets_no_extra_cell(length: int, last: str) -> None:
    row = ((Span("0" * length),), (Span(last),) if last else ())
    torn = Document(URL, "Guide", "en", (Section(URL, ("a",), ("Guide",), [Table(head=(), rows=[row])]),))
    chunks = Chunker(Bytes(max_tokens=200), 100, 0, "characters")(torn)
    assert sum(chunk.text.splitlines()[-1].count(" | ") for chunk in chunks) == 1
    assert len(PlainChunker(Bytes(max_tokens=200), 100, 0, "characters")(torn)) == len(chunks)


# -- blocks that stay together


def test_short_blocks_share_a_chunk_under_one_heading_path() -> None:
    [chunk] = PlainChunker(MINILM)(document(section(prose("See this:"), Block("code", "  a = 1\n  b = 2"))))
    assert chunk.text == "See this:\n\n  a = 1\n  b = 2"
    assert chunk.embed_text == "Guide > Part\n" + chunk.text


def test_block_that_fits_is_never_split() -> None:
    code = "\n".join(f"line_{n} = {n}" for n in range(20))
    table = "\n".join(f"row {n} | value {n}" for n in range(20))
    text = sentences(15)
    texts = cut(prose(text), Block("code", code), Block("table", table), prose(text))
    assert len(texts) > 1
    for block in (code, table, text):
        assert any(block in text for text in texts)


@pytest.mark.parametrize(
    ("kind", "gap", "parts"),
    [
        ("code", "\n", [f"    call_{n}(argument_{n}, other_{n})" for n in range(100)]),
        ("prose", " ", [f"This is sentence number {n} of them." for n in range(100)]),
        ("prose", " ", [f"word{n}" for n in range(2_000)]),
    ],
    ids=["lines", "sentences", "words"],
)
def test_long_block_is_cut_between_its_parts(kind: FlatKind, gap: str, parts: list[str]) -> None:
    texts = cut(Block(kind, gap.join(parts)))
    assert len(texts) > 2
    assert gap.join(texts) == gap.join(parts)
    assert all(text.startswith(tuple(parts)) and text.endswith(tuple(parts)) for text in texts)


ROWS = [f"option_{n} | what option {n} does | {n}" for n in range(80)]


def test_cut_table_repeats_its_header_over_whole_rows() -> None:
    header = "Name | Meaning | Default"
    for rows in (ROWS, [header, *ROWS]):
        parts = [text.split("\n") for text in cut(Block("table", "\n".join(rows), header))]
        assert len(parts) > 2
        assert {part[0] for part in parts} == {header}
        assert [row for part in parts for row in part[1:]] == ROWS


def test_table_header_too_long_to_repeat_appears_once() -> None:
    header = sentences(15, "column")
    text = "\n".join(cut(Block("table", "\n".join(ROWS), header)))
    assert squeezed(text) == squeezed(header + "".join(ROWS))


def test_words_split_by_a_budget_join_to_the_same_text() -> None:
    text = "  one two,three\n\nfour     five "
    parts = split_words(text, 6, lambda texts: [len(text) for text in texts])
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 6


# -- overlap


def test_prose_repeats_its_last_words_in_the_next_chunk() -> None:
    chunks = PlainChunker(MINILM, 64, 12)(document(section(prose(sentences(60)))))
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        first = " ".join(after.text.split()[:5])
        assert first in before.text
    assert all(chunk.tokens <= 64 for chunk in chunks)


def test_code_and_other_sections_repeat_nothing() -> None:
    code = "\n".join(f"line_{n} = {n}" for n in range(60))
    chunks = PlainChunker(MINILM, 64, 20)(
        document(section(Block("code", code)), section(prose("Another."), anchor="b"))
    )
    assert "\n".join(chunk.text for chunk in chunks) == code + "\nAnother."


# -- ids


def test_heading_path_repeats_nothing_and_is_not_part_of_the_text() -> None:
    headings = ("Guide", "Guide", "Part\none")
    [chunk] = PlainChunker(MINILM)(document(section(prose("Text."), headings=headings)))
    assert chunk.embed_text == "Guide > Part one\nText."
    assert chunk.text == "Text."
    [titled] = PlainChunker(MINILM)(document(section(prose("Text.")), title="Manual"))
    assert titled.embed_text == "Manual > Guide > Part\nText."


def test_section_without_text_has_no_chunk() -> None:
    assert cut() == cut(prose(" \n\t"), Block("code", "\n\n")) == []


def ids(chunks: list[Chunk]) -> set[str]:
    return {chunk.id for chunk in chunks}


def test_inserted_sentence_renews_only_the_chunks_with_changed_text() -> None:
    paragraphs = [sentences(20, word) for word in ("first", "second", "third", "fourth")]
    edited = [*paragraphs[:2], "An inserted sentence.", *paragraphs[2:]]
    elsewhere = section(prose("Other."), anchor="b")
    before = PlainChunker(MINILM)(document(section(*map(prose, paragraphs)), elsewhere))
    after = PlainChunker(MINILM)(document(section(*map(prose, edited)), elsewhere))
    unchanged = {chunk.text for chunk in before} & {chunk.text for chunk in after}
    assert len(unchanged) >= 3
    assert ids(before) & ids(after) == {chunk.id for chunk in after if chunk.text in unchanged}


def test_edits_elsewhere_on_the_page_change_no_id() -> None:
    kept = section(prose(sentences(80)), anchor="kept")
    before = PlainChunker(MINILM)(document(kept))
    after = PlainChunker(MINILM)(document(section(prose(sentences(90, "new"))), kept))
    assert ids(before) < ids(after)


def test_repeated_text_under_an_anchor_has_two_ids() -> None:
    twins = PlainChunker(MINILM)(document(section(prose("Same.")), section(prose("Same."))))
    assert len(ids(twins)) == 2
    assert twins[0].text_hash == twins[1].text_hash


def test_no_setting_is_part_of_an_id() -> None:
    page = document(section(prose("Short.")))
    assert ids(PlainChunker(MINILM)(page)) == ids(PlainChunker(WORDS, 36)(page))


def test_embed_hash_depends_on_model_prefix_path_and_text() -> None:
    base = section(prose("Text."))
    variants = [
        (MINILM, base),
        (WORDS, base),
        (replace(MINILM, chunk_prefix="passage: "), base),
        (MINILM, replace(base, headings=("Guide", "Other"))),
        (MINILM, replace(base, content=nodes_of(prose("Text!")))),
    ]
    hashes = {PlainChunker(counter)(document(section))[0].embed_hash for counter, section in variants}
    assert len(hashes) == len(variants)
    moved = replace(base, anchors=("elsewhere",), url=URL + "2")
    assert PlainChunker(MINILM)(document(moved))[0].embed_hash in hashes


# -- refused settings


@pytest.mark.parametrize(
    ("size", "overlap", "unit", "said"),
    [
        (257, 0, "tokens", "reads 256 tokens"),
        (-1, 0, "tokens", "negative"),
        (100, -1, "tokens", "negative"),
        (100, 100, "tokens", "less than"),
        (0, 256, "tokens", "less than"),
        (5, 0, "tokens", "at least"),
        (5, 0, "characters", "at least"),
        (100, 0, "words", "tokens or characters"),
    ],
)
def test_impossible_sizes_are_refused(size: int, overlap: int, unit: str, said: str) -> None:
    with pytest.raises(InvalidChunkSize, match=said):
        PlainChunker(MINILM, size, overlap, unit)  # type: ignore[arg-type]


def test_prefix_that_fills_the_window_is_refused() -> None:
    with pytest.raises(InvalidChunkSize, match="prefix"):
        PlainChunker(replace(MINILM, chunk_prefix=sentences(40)))
