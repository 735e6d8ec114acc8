"""Understands "this page", "here" and "the example above" by the page that the reader has open.

Knows words, not what the index holds.
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

# What a page, or a part of one, is called.
_PAGE = r"(?:page|article|document|guide|tutorial|chapter|how-?to|quickstart)"
_PART = (
    r"(?:section|paragraph|part|table|figure|list|example|sample|snippet|code|diagram|function|method|class|module"
    r"|object|parameter|argument|option|flag|setting|variable|field|attribute|property|command|api|endpoint|type|macro"
    r"|trait|step|instruction|feature|widget|component|plugin|package|library|concept|query|statement|operator"
    r"|configuration)s?"
)
_THIS_PAGE = re.compile(
    rf"\b(?:this|the (?:current|open|present)) {_PAGE}\b(?:'s\b)?"
    rf"|\bthe {_PAGE} (?:that )?i(?:'m| am| have)? (?:on|reading|looking at|viewing|open|see)\b"
    r"|\bdiese[rmns]? (?:seite|anleitung)\b|\bcette page\b|\best[ae] (?:página|pagina)\b"
    r"|[本此该这這](?:页面?|頁面?|文档)|この(?:ページ|記事)",
    re.IGNORECASE,
)
_THIS_PART = re.compile(rf"\b(?:this|these) {_PART}\b", re.IGNORECASE)
# "What is documented here?", "the example above": not "here is my code" nor "values above 5".
_SHOWN = r"(?:described|documented|explained|shown|listed|mentioned|given|written|said|defined|covered|introduced)"
_THERE = re.compile(
    rf"\b{_SHOWN} (?:here|above|below)\b|\b(?:used|meant|missing|happening|say|says) here\b|(?<=\w )here(?=[ ?.!]*$)"
    rf"|\bthe (?:above|below) {_PART}\b|\b{_PART} (?:{_SHOWN} )?(?:above|below)\b",
    re.IGNORECASE,
)
# "What is this?", "How do I use it?": with nothing else in the question, it is the page.
_BARE = re.compile(
    r"(?<!\bdo )\b(?:this|it|that|these|them)\b"
    r"(?=\s*(?:[?.!]*$|(?:do|does|for|mean|means|about|work|works|return|returns)\b))",
    re.IGNORECASE,
)
# Words of such a question that are about anything.
_GENERAL = frozenset(terms("this it that these them here show example give tell use mean work return"))
_NOUNS = frozenset(terms(re.sub(r"\W", " ", f"{_PAGE} {_PART}")))
# One who brings code, an example or a long story means that.
_MOST_CHARACTERS, _MOST_BEHIND_COLON = 300, 9
_MY = ("code", "function", "example", "script", "config", "query", "class", "page", "table")
# Content words before "this parameter", or beside a bare "this", with which a question itself says what it is about.
# Of 1,884 users' questions that were asked without a page, 3 are taken to mean one.
_MOST_BEFORE, _MOST_BESIDE = 2, 1
# What a question about all of a page has no words of the page for.
_WHOLE = re.compile(
    r"\b(?:summar\w+|overview|tl;?dr|gist|key (?:points|takeaways)|main (?:points|idea)"
    r"|what(?:'s| is| does| do| are)\b.{0,30}\babout(?=[ ?.!]*$)|what(?:'s| is| are) (?:this|these)(?=[ ?.!]*$)"
    r"|^(?:please |can you |could you )?(?:explain|describe)|zusammenfass\w*|résum\w+|resum\w+)\b|总结|總結|要約",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A question as it reads without the page that its reader has open, and that page, if the index holds it.

    `focus` is "page" for a question about it, "whole" for one about all of it, else ""; `asked` is how it was put.
    """

    question: str
    place: Place | None = None
    focus: Focus = ""
    asked: str = ""

    def queries(self, wordings: Sequence[str], quoted: bool) -> tuple[str, ...]:
        """Return what to search for: also as it was put, since the page's name hides what is asked about it.

        What is `quoted` has to bear on the page, not on the word "summarize".
        """
        if self.place and self.focus == "whole" and quoted:
            return (_bare(self.place.title),)
        return (*wordings, self.asked) if self.focus == "page" else tuple(wordings)

    def arrange(self, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Return at most `k` of `hits`, those of the page first; no others where it has all words of the question."""
        if self.place is None:
            return list(hits[:k])
        hits = page_first(hits, self.place.url, k, self.focus == "whole")
        url, words = self.place.url, content_words(self.asked) - _GENERAL - _NOUNS
        own = [hit for hit in hits if hit.url == url]
        said = words_of("\n".join(full_text(hit) for hit in own))
        return own[:k] if own and (self.focus == "whole" or words <= said) else list(hits[:k])


def open_page(question: str, place: Place | None, alone: bool = True, meant: bool = False) -> OpenPage:
    """Return a question with the name of the open page where it means that page.

    `alone`: no turn before it could be what its "this" refers to. `meant`: its reader said that it means the page.
    """
    if place is None or (_brings_its_own(question) and not meant):
        return OpenPage(question, place)
    named = _named(question, place) or (_unnamed(question, place) if alone else "")
    if not named and not meant:
        return OpenPage(question, place)
    named = named or _with_name(question, place)
    return OpenPage(named, place, "whole" if _WHOLE.search(question) else "page", question)


def _named(question: str, place: Place) -> str:
    """Return the question with the page's name for "this page", "here" or "the example above"; "" without these."""
    if found := _THIS_PAGE.search(question):
        return _put(question, found, place.title)
    part = _THIS_PART.search(question)
    if part and len(content_words(question[: part.start()])) <= _MOST_BEFORE:
        return _put(question, part, place.subject)
    return _with_name(question, place) if _THERE.search(question) else ""


def _unnamed(question: str, place: Place) -> str:
    """Return a question about "this", "it" or nothing ("Summarize") with the page's name; "" if it is about more."""
    beside = content_words(_WHOLE.sub(" ", question)) - _GENERAL
    if found := _BARE.search(question):
        return _put(question, found, place.subject) if len(beside) <= _MOST_BESIDE else ""
    return f"{question.rstrip(' ?.!')}: {_bare(place.title)}" if _WHOLE.match(question) and not beside else ""


def _with_name(question: str, place: Place) -> str:
    return f"{question.rstrip(' ?.!')} ({_bare(place.subject)})?"


def _brings_its_own(question: str) -> bool:
    """Return whether a question brings code, an example or a long story, which it means."""
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
