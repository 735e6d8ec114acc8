"""Tells whether a word is English; the words come with pyspellchecker."""

from functools import cache


def is_english(word: str) -> bool:
    """Return whether a word in lower case is one of 160,000 English ones."""
    return f"\n{word}\n" in _words()


@cache
def _words() -> str:
    """Return the words, each on a line: a set of them would keep 25 MB in every process."""
    from spellchecker import SpellChecker  # loading it takes a third of a second: the first unknown word waits for it

    return "\n".join(("", *SpellChecker(language="en"), ""))
