"""Answers from hits without a language model, by the sentences that fit best.

Knows texts, words and ranks; no index, no model and no HTTP.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.answering.grounding.answerable import BEFORE_QUOTING, Threshold, unknown_answer
from pipelines.answering.hits import heading
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Hit

LONGEST_CODE_LINE = 120  # a longer line is prose that looks like code (a parameter's description)
MOST_CODE_LINES = 25  # longer code is cut: the source's own page has all of it

# A sentence with such a beginning refers to the one before it.
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


def is_code(block: str) -> bool:
    """Return whether most lines of a block look like code or program output."""
    if block.startswith((">>> ", "$ ")):
        return True
    lines = [line for line in block.splitlines() if line.strip()]
    return sum(bool(_CODE_LINE.match(line)) and len(line) <= LONGEST_CODE_LINE for line in lines) * 2 > len(lines)


def sentences(block: str) -> Iterator[str]:
    """Yield the whole sentences of a block of prose, without a beginning or an end that was cut off."""
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


def split_passages(hits: Sequence[Hit]) -> Iterator[Passage]:
    """Yield every sentence and code block of `hits`, in order, but no sentence whose colon announces nothing."""
    for n, hit in enumerate(hits):
        texts = list(_texts(hit.text))
        for place, (text, code) in enumerate(texts):
            announces = place + 1 < len(texts) and texts[place + 1][1]
            if code or announces or not text.endswith(":"):
                yield Passage(n, place, text, code, frozenset(terms(text)))


def _texts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield sentences, and runs of code with their blank lines, each with whether it is code."""
    blocks = re.split(r"\n\s*?\n", text)
    for code, run in itertools.groupby(blocks, is_code):
        if code:
            yield "\n\n".join(run).rstrip(), True
        else:
            yield from ((sentence, False) for block in run for sentence in sentences(block))


class ExtractiveSynthesizer:
    """Answers with the `most` best sentences of the hits, or says that it does not know.

    A sentence's score is the share of the question's words that it has, weighted by how rare they are in the hits;
    words of its headings count half, and later hits count less. `threshold` decides which hits fit.
    """

    def __init__(self, *, most: int = 3, threshold: Threshold = BEFORE_QUOTING) -> None:
        self._most, self._threshold = most, threshold

    def synthesize(self, question: str, hits: Sequence[Hit]) -> str:
        """Return the answer to `question` from its hits: `[n]` cites hit n, from 1."""
        passages = list(split_passages(hits))
        weighted = _Question(question, passages, hits)
        vectors = any(VECTOR in hit.scores for hit in hits)
        if not any(self._fits(weighted, hit, vectors) for hit in hits):
            return unknown_answer(hits)
        chosen = self._choose(weighted, passages)
        return _write(chosen, passages) if chosen else _point_to(hits)

    def _fits(self, question: "_Question", hit: Hit, vectors: bool) -> bool:
        share = question.share(frozenset(terms(f"{heading(hit)} {hit.title}\n{hit.text}")))
        return self._threshold.passes(share, hit.scores.get(VECTOR, 0.0) if vectors else None)

    def _choose(self, question: "_Question", passages: Sequence[Passage]) -> list[Passage]:
        """Return the best passages that differ from each other, those of one hit together and in its order."""
        scores = ((question.score(p), p) for p in passages)
        ranking = sorted(scores, key=lambda item: (-item[0], item[1].hit, item[1].place))
        chosen: list[Passage] = []
        for score, passage in ranking:
            if len(chosen) == self._most or score < 0.65 * ranking[0][0] or score <= 0:
                break
            if all(_differ(passage, other) for other in chosen) and not (passage.code and chosen):
                chosen.append(passage)
        order = list(dict.fromkeys(p.hit for p in chosen))
        return sorted(chosen, key=lambda p: (order.index(p.hit), p.place))


@dataclass(slots=True)
class _Question:
    """A question's words with their weights by rarity."""

    text: str
    passages: Sequence[Passage]
    hits: Sequence[Hit]
    weights: dict[str, float] = field(init=False)
    headings: list[frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        frequency = Counter(term for passage in self.passages for term in passage.terms)
        own = dict.fromkeys(t for t in terms(self.text) if t not in STOP_TERMS)
        self.weights = {t: math.log(1 + (1 + len(self.passages)) / (1 + frequency[t])) for t in own}
        self.headings = [frozenset(terms(f"{heading(hit)} {hit.title}")) for hit in self.hits]

    def share(self, words: frozenset[str]) -> float:
        """Return the weighted share of the question's words that are in `words`, 0 to 1."""
        total = sum(self.weights.values())
        return sum(w for t, w in self.weights.items() if t in words) / total if total else 0.0

    def score(self, passage: Passage) -> float:
        """Return how well a passage answers the question."""
        above = self.share(passage.terms | self.headings[passage.hit])
        early = 0.1 / (1 + passage.place)
        whole = self.share(passage.terms) + 0.5 * above + early
        leaning = 0.8 if passage.place and _LEANING.match(passage.text) else 1.0
        asking = 0.3 if passage.text.endswith("?") else 1.0  # a question has all the words and answers nothing
        return whole * leaning * asking * (0.7 if passage.code else 1.0) / (1 + 0.15 * passage.hit)


def _differ(one: Passage, other: Passage) -> bool:
    return len(one.terms & other.terms) < 0.7 * min(len(one.terms), len(other.terms))


def _write(chosen: Sequence[Passage], passages: Sequence[Passage]) -> str:
    paragraphs = []
    for hit in dict.fromkeys(p.hit for p in chosen):
        own = [p for p in chosen if p.hit == hit]
        paragraphs.append(" ".join(f"{p.text} [{hit + 1}]" for p in own if not p.code))
        paragraphs += [f"{_fence(code.text)}\n[{hit + 1}]" for code in _codes(own, passages)]
    return "\n\n".join(p for p in paragraphs if p)


def _codes(own: Sequence[Passage], passages: Sequence[Passage]) -> list[Passage]:
    """Return the chosen code, and the code that a chosen sentence announces."""
    announced = {(p.hit, p.place + 1) for p in own if p.text.endswith(":")}
    return [p for p in passages if p.code and (p in own or (p.hit, p.place) in announced)]


def _fence(code: str) -> str:
    lines = code.splitlines()
    kept = lines[:MOST_CODE_LINES] + (["…"] if len(lines) > MOST_CODE_LINES else [])
    return "\n".join(["```", *kept, "```"])


def _point_to(hits: Sequence[Hit]) -> str:
    """Return where to look, if the hits fit but have no whole sentence that does (an API signature, a table)."""
    return "See: " + " ".join(f"{heading(hit)} [{n}]" for n, hit in enumerate(hits[:3], 1))
