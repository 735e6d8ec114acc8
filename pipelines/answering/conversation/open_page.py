"""Resolves "this page", "here" and "the example above" to the page that the reader has open.

This module looks only at words, not at the contents of the index.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.answering.grounding.words import content_words, words_of
from pipelines.answering.hits import full_text
from pipelines.answering.retrieval.one_page import Focus, page_first
from pipelines.lexical import terms
from pipelines.records import Hit
from pipelines.store import Place
from pipelines.text.phrases import compile_phrases, read_table

_TABLE = read_table(__name__)
_PHRASES = compile_phrases(_TABLE)
# Words that say nothing about a question's subject.
_GENERAL = frozenset(terms("this it that these them here show example give tell use mean work return"))
_NOUNS = frozenset(terms(re.sub(r"\W", " ", str([_TABLE["parts"]["page"], _TABLE["parts"]["part"]]))))
# A reader who brings code, an example or a long story refers to that.
_MOST_CHARACTERS, _MOST_BEHIND_COLON = 300, 9
_MY = ("code", "function", "example", "script", "config", "query", "class", "page", "table")
# With more content words before "this parameter", or around a bare "this", a question names its own subject. Of 1,884
# users' questions asked without a page, 3 are mistaken for questions about one.
_MOST_BEFORE, _MOST_BESIDE = 2, 1


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A question rewritten to make sense without the open page, and that page if the index contains it.

    `focus` is "page" for a question about the page, "whole" for one about all of it, otherwise "". `asked` is the
    original wording.
    """

    question: str
    place: Place | None = None
    focus: Focus = ""
    asked: str = ""

    def queries(self, wordings: Sequence[str], quoted: bool) -> tuple[str, ...]:
        """Return the search queries, with the original wording too, because the page's name may obscure the question.

        If the page will be `quoted`, the query is its title: quotations must match the page, not the word "summarize".
        """
        if self.place and self.focus == "whole" and quoted:
            return (_bare(self.place.title),)
        return (*wordings, self.asked) if self.focus == "page" else tuple(wordings)

    def arrange(self, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Return at most `k` hits, the page's own first; only these if they contain all words of the question."""
        if self.place is None:
            return list(hits[:k])
        hits = page_first(hits, self.place.url, k, self.focus == "whole")
        url, words = self.place.url, content_words(self.asked) - _GENERAL - _NOUNS
        own = [hit for hit in hits if hit.url == url]
        said = words_of("\n".join(full_text(hit) for hit in own))
        return own[:k] if own and (self.focus == "whole" or words <= said) else list(hits[:k])


def open_page(question: str, place: Place | None, alone: bool = True, meant: bool = False) -> OpenPage:
    """Return a question with the name of the open page, if it refers to that page.

    `alone` is true if no previous turn could be the referent of its "this". `meant` is true if the reader said that the
    question is about the page.
    """
    if place is None or (_brings_its_own(question) and not meant):
        return OpenPage(question, place)
    named = _named(question, place) or (_unnamed(question, place) if alone else "")
    if not named and not meant:
        return OpenPage(question, place)
    named = named or _with_name(question, place)
    return OpenPage(named, place, "whole" if _PHRASES["whole"].search(question) else "page", question)


def _named(question: str, place: Place) -> str:
    """Return the question with the page's name for "this page", "here" or "the example above"; "" without these."""
    if found := _PHRASES["this_page"].search(question):
        return _put(question, found, place.title)
    part = _PHRASES["this_part"].search(question)
    if part and len(content_words(question[: part.start()])) <= _MOST_BEFORE:
        return _put(question, part, place.subject)
    return _with_name(question, place) if _PHRASES["there"].search(question) else ""


def _unnamed(question: str, place: Place) -> str:
    """Return a question about "this", "it" or nothing ("Summarize") with the page's name; "" if it says more."""
    beside = content_words(_PHRASES["whole"].sub(" ", question)) - _GENERAL
    if found := _PHRASES["bare"].search(question):
        return _put(question, found, place.subject) if len(beside) <= _MOST_BESIDE else ""
    return (
        f"{question.rstrip(' ?.!')}: {_bare(place.title)}" if _PHRASES["whole"].match(question) and not beside else ""
    )


def _with_name(question: str, place: Place) -> str:
    return f"{question.rstrip(' ?.!')} ({_bare(place.subject)})?"


def _brings_its_own(question: str) -> bool:
    """Return whether a question contains code, an example or a long story to which it refers."""
    said = f"{question.lower()} "
    mine = any(f"my {noun}" in said for noun in _MY)
    told = len(question.partition(": ")[2].strip()) > _MOST_BEHIND_COLON
    return len(question) > _MOST_CHARACTERS or mine or told


def _put(question: str, found: re.Match[str], name: str) -> str:
    return f"{question[: found.start()]}{_bare(name)}{question[found.end() :]}"


def _bare(title: str) -> str:
    """Return a title without its number: "34.3. Command Execution Functions", "Chapter 34. libpq"."""
    words = title.split(" ")
    if words[0].lower() in ("chapter", "appendix", "part") and len(words) > 2:
        del words[0]
    number = words[0].removesuffix(".")
    numbered = len(words) > 1 and number != words[0] and (len(number) == 1 or number.replace(".", "").isdigit())
    return " ".join(words[1:]) if numbered else title
