"""Hits become an answer without a language model: the sentences that fit the question best, each with its source.

Knows texts, words and ranks; no index, no model and no HTTP.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.answering.retrieval.legs import VECTOR
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Hit

# As long as a reader's glance; the whole text is in the hit.
SNIPPET = 300
# A longer line is prose that looks like code (a parameter's description).
LONGEST_CODE_LINE = 120
# Code beyond this many lines is for the source's own page.
MOST_CODE_LINES = 25

# Shares of a question's words, on the same questions: 2 of the 83 have 0.2 or less, 1 of the 20 has 0.76.
SOME, NEARLY_ALL = 0.2, 0.8

UNKNOWN = "I do not know: nothing in this collection seems to answer that."

# A sentence that begins so leans on the one before it.
_LEANING = re.compile(
    r"\(|(?:This|That|These|Those|It|They|Then|Now|Next|Here|However|But|And|So|Also|Otherwise|Instead|Finally)\b"
)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|fig|no|approx|resp|incl|dr|mr|ms)|\b[A-Z])\.$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`]*[A-Z0-9`])")
_CODE_LINE = re.compile(
    r"\s{2,}\S|>>>|\.\.\. |\$ |@\w|# |//|\w+: |(?:from|import|def|class|return|for|if|with|async|await|pip|ray)\s.*"
    r"|.*[;{}\\,(\[]$|[\w.\[\]\"', ]+\s*[+-]?=\s*\S|[\w.]+\(.*|[)\]}]"
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence or a code block of a hit. `place` is its number within the hit, `terms` its words."""

    hit: int
    place: int
    text: str
    code: bool
    terms: frozenset[str]


def snippet(text: str, length: int = SNIPPET) -> str:
    """The beginning of `text` on one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"


def heading(hit: Hit) -> str:
    """A hit's heading path for a reader; the page's title where it has none."""
    return " › ".join(dict.fromkeys(hit.headings)) or hit.title or hit.url


def is_code(block: str) -> bool:
    """Whether most lines of a block look like code or program output."""
    if block.startswith((">>> ", "$ ")):
        return True
    lines = [line for line in block.splitlines() if line.strip()]
    return sum(bool(_CODE_LINE.match(line)) and len(line) <= LONGEST_CODE_LINE for line in lines) * 2 > len(lines)


def sentences(block: str) -> Iterator[str]:
    """The whole sentences of a block of prose; a beginning or an end that was cut off is left out."""
    parts = _SENTENCE_END.split(" ".join(block.split()))
    sentence = ""
    for part in parts:
        sentence = f"{sentence} {part}" if sentence else part
        if not _ABBREVIATION.search(sentence):
            if _is_whole(sentence):
                yield sentence
            sentence = ""
    if sentence and _is_whole(sentence):
        yield sentence


def _is_whole(sentence: str) -> bool:
    words = sentence.split()
    first = words[0].lstrip("\"'([`") if words else ""
    begins = first[:1].isupper() or first[:1].isdigit() or bool(re.search(r"\w[._(]|[a-z][A-Z]|-\w", first))
    return begins and 4 <= len(words) <= 80 and sentence.rstrip("\"')]`")[-1:] in (".", "!", "?", ":")


def passages(hits: Sequence[Hit]) -> Iterator[Passage]:
    """Every sentence and code block of `hits`, in order. A colon that announces no code ends no sentence."""
    for n, hit in enumerate(hits):
        texts = list(_texts(hit.text))
        for place, (text, code) in enumerate(texts):
            announces = place + 1 < len(texts) and texts[place + 1][1]
            if code or announces or not text.endswith(":"):
                yield Passage(n, place, text, code, frozenset(terms(text)))


def _texts(text: str) -> Iterator[tuple[str, bool]]:
    """Sentences, and runs of code with their blank lines, each with whether it is code."""
    blocks = re.split(r"\n\s*?\n", text)
    for code, run in itertools.groupby(blocks, is_code):
        if code:
            yield "\n\n".join(run).rstrip(), True
        else:
            yield from ((sentence, False) for block in run for sentence in sentences(block))


class ExtractiveSynthesizer:
    """Answers with the `most` best sentences of the hits, or says that it does not know.

    A sentence's score is the share of the question's words that it holds, weighted by how rare they are among
    the candidates, words of its headings counting half; hits further down count less.

    A hit fits if its cosine is at least `cosine` and some of the question's words stand in it, or nearly all of
    them; without vectors, if the weighted share of words is at least `coverage`. On 2,203 chunks of the Ray docs
    with the default model, the cosine alone passes 79 of 83 users' questions and none of 20 about other things
    (0.14 to 0.36); `coverage` alone 73 and 3. Other models have other cosines: then the words decide.
    """

    def __init__(self, *, most: int = 3, coverage: float = 0.4, cosine: float = 0.4) -> None:
        self._most = most
        self._coverage = coverage
        self._cosine = cosine

    def synthesize(self, question: str, hits: Sequence[Hit]) -> str:
        """The answer to `question` from its hits: `[n]` cites hit n, from 1."""
        found = list(passages(hits))
        asked = _Question(question, found, hits)
        by_words = not any(VECTOR in hit.scores for hit in hits)
        if not any(self._fits(asked, hit, by_words) for hit in hits):
            return unknown(hits)
        chosen = self._choose(asked, found)
        return _written(chosen, found) if chosen else _pointing(hits)

    def _fits(self, question: "_Question", hit: Hit, by_words: bool) -> bool:
        covered = question.share(frozenset(terms(f"{heading(hit)} {hit.title}\n{hit.text}")))
        if by_words:
            return covered >= self._coverage
        close = hit.scores.get(VECTOR, 0.0) >= self._cosine
        return covered >= NEARLY_ALL or (close and covered >= SOME)

    def _choose(self, question: "_Question", found: Sequence[Passage]) -> list[Passage]:
        """The best passages that differ from each other, those of one hit together and in its order."""
        scored = sorted(
            ((question.score(p), p) for p in found), key=lambda item: (-item[0], item[1].hit, item[1].place)
        )
        chosen: list[Passage] = []
        for score, passage in scored:
            if len(chosen) == self._most or score < 0.65 * scored[0][0] or score <= 0:
                break
            if all(_differ(passage, other) for other in chosen) and not (passage.code and chosen):
                chosen.append(passage)
        order = list(dict.fromkeys(p.hit for p in chosen))
        return sorted(chosen, key=lambda p: (order.index(p.hit), p.place))


@dataclass(slots=True)
class _Question:
    """A question's words with their weights, and how well a text covers them."""

    text: str
    found: Sequence[Passage]
    hits: Sequence[Hit]
    weights: dict[str, float] = field(init=False)
    headings: list[frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        frequency = Counter(term for passage in self.found for term in passage.terms)
        asked = dict.fromkeys(t for t in terms(self.text) if t not in STOP_TERMS)
        self.weights = {t: math.log(1 + (1 + len(self.found)) / (1 + frequency[t])) for t in asked}
        self.headings = [frozenset(terms(f"{heading(hit)} {hit.title}")) for hit in self.hits]

    def share(self, words: frozenset[str]) -> float:
        """The weighted share of the question's words that stand in `words`, 0 to 1."""
        total = sum(self.weights.values())
        return sum(w for t, w in self.weights.items() if t in words) / total if total else 0.0

    def score(self, passage: Passage) -> float:
        above = self.share(passage.terms | self.headings[passage.hit])
        early = 0.1 / (1 + passage.place)
        whole = self.share(passage.terms) + 0.5 * above + early
        leaning = 0.8 if passage.place and _LEANING.match(passage.text) else 1.0
        asking = 0.3 if passage.text.endswith("?") else 1.0  # a question shares all words with itself and answers none
        return whole * leaning * asking * (0.7 if passage.code else 1.0) / (1 + 0.15 * passage.hit)


def _differ(one: Passage, other: Passage) -> bool:
    return len(one.terms & other.terms) < 0.7 * min(len(one.terms), len(other.terms))


def _written(chosen: Sequence[Passage], found: Sequence[Passage]) -> str:
    paragraphs = []
    for hit in dict.fromkeys(p.hit for p in chosen):
        own = [p for p in chosen if p.hit == hit]
        paragraphs.append(" ".join(f"{p.text} [{hit + 1}]" for p in own if not p.code))
        paragraphs += [f"{_fenced(code.text)}\n[{hit + 1}]" for code in _codes(own, found)]
    return "\n\n".join(p for p in paragraphs if p)


def _codes(own: Sequence[Passage], found: Sequence[Passage]) -> list[Passage]:
    """The chosen code, and the code that a chosen sentence announces."""
    announced = {(p.hit, p.place + 1) for p in own if p.text.endswith(":")}
    return [p for p in found if p.code and (p in own or (p.hit, p.place) in announced)]


def _fenced(code: str) -> str:
    lines = code.splitlines()
    shown = lines[:MOST_CODE_LINES] + (["…"] if len(lines) > MOST_CODE_LINES else [])
    return "\n".join(["```", *shown, "```"])


def unknown(hits: Sequence[Hit]) -> str:
    """What is said where nothing that was found supports an answer: so, and the closest sources."""
    closest = " ".join(f"[{n}]" for n in range(1, min(len(hits), 3) + 1))
    return f"{UNKNOWN} The closest that it holds: {closest}" if closest else UNKNOWN


def _pointing(hits: Sequence[Hit]) -> str:
    """Where the hits fit but hold no whole sentence that does (an API signature, a table): where to look."""
    return "See: " + " ".join(f"{heading(hit)} [{n}]" for n, hit in enumerate(hits[:3], 1))
