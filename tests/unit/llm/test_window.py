"""Window arithmetic: parts fit, lose nothing and overlap; packs keep their order; squeezing keeps proportions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.llm.window import ELLIPSIS, Window, WindowTooSmall, batches, greatest, pack, shorten, split, squeeze


def by_length(text: str) -> int:
    """Estimate tokens like a client without a tokenizer: only roughly additive."""
    return -(-len(text) // 4)


def by_words(text: str) -> int:
    return len(text.split())


def by_growth(text: str) -> int:
    """Count tokens monotonically but far from additively: two texts together count more than their sum."""
    return int(len(text) ** 1.1 / 4)


COUNTS = st.sampled_from([by_length, by_words, by_growth])
TEXTS = st.text(st.sampled_from("ab é\n\t漢. {}"), max_size=400)


@given(TEXTS, COUNTS, st.integers(8, 40))
def test_parts_fit_and_lose_no_character(text, count, most):
    parts = split(text, lambda part: count(part) <= most, count)
    assert all(count(part) <= most and part.strip() for part in parts)
    at = 0
    for part in parts:  # each part starts inside or just after the text covered by earlier parts
        begins = max(text.find(part, start) for start in range(max(0, at - len(part)), at + 1))
        assert begins >= 0
        assert not text[at:begins].strip()
        at = max(at, begins + len(part))
    assert not text[at:].strip()


@given(st.integers(1, 300), st.integers(6, 60))
def test_words_that_fit_are_never_split(words, most):
    text = " ".join(f"word{n}" for n in range(words))
    parts = split(text, lambda part: by_length(part) <= most, by_length)
    assert {word for part in parts for word in part.split()} == set(text.split())


def test_part_starts_with_the_end_of_the_previous_one():
    text = " ".join(f"word{n}" for n in range(300))
    parts = split(text, lambda part: by_words(part) <= 50, by_words)
    assert len(parts) == 7  # 50 words, then 45 new ones each
    assert all(later.split()[:5] == earlier.split()[-5:] for earlier, later in itertools.pairwise(parts))


def test_overlap_is_dropped_for_a_word_that_needs_the_room():
    text = "aaa " * 19 + "b" * 80
    parts = split(text, lambda part: by_length(part) <= 20, by_length)
    assert parts == ["aaa " * 19, "b" * 80]


def test_lines_that_fit_stay_whole():
    lines = [f"    call({n})  # comment" for n in range(40)]
    parts = split("\n".join(lines), lambda part: by_length(part) <= 40, by_length, overlap=0)
    assert [line for part in parts for line in part.splitlines()] == lines


def test_fitting_text_is_one_part_and_blank_or_oversized_text_is_none():
    assert split("two words", lambda _: True, by_words) == ["two words"]
    assert split(" \n ", lambda _: True, by_words) == []
    assert split("word", lambda _: False, by_words) == []


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 4))
def test_packs_keep_everything_in_order_and_only_as_much_as_fits(items, least):
    packs = pack(items, lambda some: sum(some) <= 12, least)
    assert [item for some in packs for item in some] == items
    assert all(sum(some) <= 12 or len(some) <= least for some in packs)
    assert all(len(some) >= least for some in packs[:-1])
    for earlier, later in itertools.pairwise(packs):
        assert sum(earlier) + later[0] > 12


def test_batches_leave_the_rest_for_the_last():
    assert batches([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert batches([], 2) == []


@given(st.lists(TEXTS, max_size=6), st.integers(0, 300))
def test_squeezing_cuts_the_longest_texts_to_one_length(texts, most):
    cut = squeeze(texts, lambda some: sum(map(len, some)) <= most)
    assert sum(map(len, cut)) <= most
    assert all(text.startswith(short) for text, short in zip(texts, cut, strict=True))
    shortened = [len(short) for text, short in zip(texts, cut, strict=True) if short != text]
    assert len(set(shortened)) <= 1
    assert not shortened or max(map(len, cut)) == shortened[0]


@given(TEXTS, st.integers(0, 60))
def test_shortened_text_keeps_both_ends(text, most):
    short = shorten(text, lambda part: by_length(part) <= most)
    assert by_length(short) <= most
    head, ellipsis, tail = short.rpartition(ELLIPSIS)
    assert short == text or not short or (ellipsis and text.startswith(head) and text.endswith(tail) and len(head) > 0)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_bisection_finds_the_largest_value(most, bound):
    assert greatest(most, lambda number: number <= bound) == min(most, bound)


def test_window_reserves_room_for_answer_and_messages_or_shows_its_numbers():
    window = Window.of(1000, 0.5, 200, 100, by_words)
    assert (window.prompt, window.context) == (700, 500)
    with pytest.raises(WindowTooSmall, match=r"1,000 .* 700 .* 300"):
        Window.of(1000, 0.5, 700, 300, by_words)
