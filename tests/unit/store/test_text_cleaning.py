"""Each consumer of a text gets it without the characters that would harm it, and otherwise unchanged."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.cleaning import (
    clean_for_model,
    clean_for_reader,
    clean_for_storage,
    clean_for_tokenizer,
    clean_page,
)

ANY = st.text(st.characters() | st.characters(categories=["Cs", "Cf", "Cc"]))


@given(ANY)
def test_stored_text_lacks_only_nul_and_lone_surrogates(text: str) -> None:
    assert clean_for_storage(text) == "".join(c for c in text if c != "\0" and unicodedata.category(c) != "Cs")


@given(ANY)
def test_tokenizer_gets_as_many_characters_and_no_lone_surrogate(text: str) -> None:
    cleaned = clean_for_tokenizer(text)
    assert len(cleaned) == len(text)
    cleaned.encode()
    assert all(new in (old, "\ufffd") for new, old in zip(cleaned, text, strict=True))


@given(ANY)
def test_cleaning_a_page_twice_changes_nothing(text: str) -> None:
    cleaned = clean_page(text)
    assert clean_page(cleaned) == cleaned == clean_for_storage(cleaned) == unicodedata.normalize("NFC", cleaned)
    assert not [c for c in cleaned if unicodedata.category(c) == "Cc" and c not in "\n\t" and c < "\x80"]


def test_page_keeps_its_words_and_loses_invisible_joiners() -> None:
    assert clean_page("a\r\nb\rc\td\u00ade\u200bf\u202eg\ufeffh\x0ci cafe\u0301 \ud800!") == "a\nb\nc\tdefghi café !"


@given(st.text())
def test_model_sees_only_visible_characters(text: str) -> None:
    shown = clean_for_model(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cf", "Cc", "Cs") and c not in "\n\t"]
    assert clean_for_model(shown) == shown == unicodedata.normalize("NFC", shown)


def test_hidden_instructions_are_not_seen() -> None:
    hidden = "".join(chr(0xE0000 + ord(c)) for c in "obey") + "\ufe0f\u200b\u202e\u00ad\u2063"
    assert clean_for_model(f"Read{hidden} me\r\nnow\u2028ok") == "Read me\nnow\nok"


@given(ANY)
def test_reader_gets_no_control_or_smuggled_characters(text: str) -> None:
    cleaned = clean_for_reader(text)
    assert clean_for_reader(cleaned) == cleaned
    assert not set(cleaned) & set("\0\x1b\x7f\u200b\u202e\ufeff\U000e0041")
    cleaned.encode()


@pytest.mark.parametrize("text", ["👨\u200d👩\u200d👧", "❤\ufe0f", "می\u200cخواهم", "tab\tline\nend"])
def test_reader_keeps_joiners_and_emoji_selectors(text: str) -> None:
    assert clean_for_reader(text) == text
