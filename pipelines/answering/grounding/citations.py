"""Turns the numbers in an answer into citations and checks what supports their claims.

Knows texts, words and vectors; no model, no prompt and no HTTP. docs/citations.md has the method and its figures.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.answering.grounding.answerable import content_terms, words_share
from pipelines.answering.hits import full_text, heading, snippet
from pipelines.lexical import terms
from pipelines.records import Citation, Hit

Embed = Callable[[Sequence[str]], np.ndarray]

# benchmarks/support.py on 548 pairs: by words 0.475 is best (balanced accuracy 0.82), and 0.5 keeps 0.76 of the claims
# and refuses 0.88 of the others; by words and vectors 0.45 is best (0.815).
SUPPORTED, SUPPORTED_BY_WORDS = 0.5, 0.5
TOGETHER = 0.8  # share of a claim's words that its passages must hold together to support it

# Words of a passage compared at a time, and the step between: about two sentences.
WINDOW, STEP = 60, 30

_FENCED = re.compile(
    r"^[ \t>*+\-0-9.)]*(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)([^\n]*?)(?<!`)\1(?!`)")
_GROUP = re.compile(r"\[\d{1,4}\](?:[ \t]*\[\d{1,4}\])*")
_NUMBER = re.compile(r"\d+")
_BLOCK = re.compile(r"\n\s*\n|\n(?=[ \t]*(?:[-*+]|\d+[.)])\s)")
_SENTENCE = re.compile(r"(?<=[.!?:])[\"')*_]*\s+(?=\S)")


def cite(text: str, hits: Sequence[Hit], embed: Embed | None = None) -> tuple[Citation, ...]:
    """Return the citations of `text` in order of appearance; `[n]` is `hits[n - 1]`, numbers beyond are ignored.

    `embed` returns rows of length 1 for texts; without it, or if it fails, words alone decide. A citation is supported
    if each of its claims is: by its own passage, or by those cited with it if it adds words to theirs. `support` is
    that of its weakest claim.
    """
    pairs = [(claim, n) for claim in _claims_within(text, len(hits)) for n in claim.numbers]
    supports: dict[int, list[Support]] = {}
    for (_, n), support in zip(pairs, _check(pairs, hits, embed), strict=True):
        supports.setdefault(n, []).append(support)
    return tuple(_citation(n, hits[n - 1], found) for n, found in supports.items())


# ---------------------------------------------------------------------------------------------- claims


@dataclass(frozen=True, slots=True)
class Claim:
    """A text of an answer with the `numbers` that it cites."""

    text: str
    numbers: tuple[int, ...]


def split_claims(text: str) -> Iterator[Claim]:
    """Yield the cited claims of `text`, in order: the sentence, list item or code block before a group of numbers.

    A sentence that begins with its number belongs to it. Brackets in code are not citations.
    """
    hidden = _SPAN.sub(_mask, _FENCED.sub(_mask, text))
    begin = 0
    for block in [*_BLOCK.finditer(hidden), None]:
        end = block.start() if block else len(hidden)
        yield from _claims_of_block(text, hidden, begin, end)
        begin = block.end() if block else end


def _claims_within(text: str, most: int) -> list[Claim]:
    claims = split_claims(text)
    return [Claim(claim.text, tuple(n for n in claim.numbers if 1 <= n <= most)) for claim in claims]


def _mask(code: re.Match[str]) -> str:
    """Return code, as long as before, without what could be a number, or the end of a sentence or block."""
    return re.sub(r"[^\w]", "x", code[0])


def _claims_of_block(text: str, hidden: str, begin: int, end: int) -> Iterator[Claim]:
    """Yield the claims of one paragraph or list item."""
    last = begin
    for group in _GROUP.finditer(hidden, begin, end):
        numbers = tuple(dict.fromkeys(int(n) for n in _NUMBER.findall(group[0])))
        before = hidden[last : group.start()].rstrip()
        cuts = [cut.end() for cut in _SENTENCE.finditer(before)]
        claim = text[last + (cuts[-1] if cuts else 0) : last + len(before)]
        if not terms(claim):
            claim = _claim_elsewhere(text, hidden, begin, group, end)
        yield Claim(" ".join(_GROUP.sub("", claim).split()), numbers)
        if _SENTENCE.match(hidden, group.end()) or before.endswith((".", "!", "?")):
            last = group.end()
    return


def _claim_elsewhere(text: str, hidden: str, begin: int, group: re.Match[str], end: int) -> str:
    """Return the claim of numbers without words before them: the rest of the sentence, else the block before."""
    after = _GROUP.split(_SENTENCE.split(hidden[group.end() : end].lstrip(), maxsplit=1)[0], maxsplit=1)[0]
    if terms(after):
        at = hidden.find(after, group.end())
        return text[at : at + len(after)]
    return text[:begin].rstrip().rsplit("\n\n", 1)[-1]


# ---------------------------------------------------------------------------------------------- support


@dataclass(frozen=True, slots=True)
class Support:
    """How well a passage supports a claim or answers a question (0 to 1), whether that is enough, and its best part."""

    score: float
    enough: bool
    window: str


def _check(pairs: Sequence[tuple[Claim, int]], hits: Sequence[Hit], embed: Embed | None) -> list[Support]:
    """Return the support of each claim by the passage of each of its numbers."""
    windows = [best_window(claim.text, hits[n - 1].passage) for claim, n in pairs]
    cosines = _cosines([claim.text for claim, _ in pairs], windows, embed)
    threshold = SUPPORTED_BY_WORDS if cosines is None else SUPPORTED
    supports = []
    for at, ((claim, n), window) in enumerate(zip(pairs, windows, strict=True)):
        share = words_share(content_terms(claim.text), full_text(hits[n - 1]))
        score = share if cosines is None else combine(share, cosines[at])
        supports.append(Support(score, score >= threshold or _supports_together(claim, n, hits), window))
    return supports


def combine(share: float, cosine: float) -> float:
    """Return the support by words and vectors, 0 to 1: their mean, with a negative cosine as 0."""
    return (share + min(max(cosine, 0.0), 1.0)) / 2


def best_window(claim: str, passage: str) -> str:
    """Return the first part of a passage, about two sentences, that shares most words with `claim`."""
    words = list(re.finditer(r"\S+", passage))
    claimed = content_terms(claim)
    starts = range(0, max(len(words) - STEP, 1), STEP)
    spans = (
        [passage[words[s].start() : words[min(s + WINDOW, len(words)) - 1].end()] for s in starts] if words else [""]
    )
    return max(spans, key=lambda span: len(claimed & frozenset(terms(span))))


def _supports_together(claim: Claim, n: int, hits: Sequence[Hit]) -> bool:
    """Return whether all passages cited for a claim support it by words together, and n adds to the others."""
    claimed = content_terms(claim.text)
    own = {m: claimed & frozenset(terms(full_text(hits[m - 1]))) for m in claim.numbers}
    others = frozenset().union(*(own[m] for m in own if m != n))
    return len(own) > 1 and bool(own[n] - others) and len(own[n] | others) >= TOGETHER * len(claimed)


def _cosines(claims: Sequence[str], windows: Sequence[str], embed: Embed | None) -> list[float] | None:
    """Return the cosine of each claim with its window, embedded in one call; None if that fails."""
    if embed is None or not claims:
        return None
    texts = list(dict.fromkeys([*claims, *windows]))
    try:
        vectors = dict(zip(texts, np.asarray(embed(texts)), strict=True))
        cosines = [float(vectors[one] @ vectors[other]) for one, other in zip(claims, windows, strict=True)]
    except Exception:  # a failure of the embedding model costs the vectors, never the answer
        return None
    return cosines if np.isfinite(cosines).all() else None


def cite_quotes(quoted: Mapping[int, Support], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """Return the citations of an answer that quotes `hits[n - 1]`, with how well each answers the question."""
    return tuple(_citation(n, hits[n - 1], [support]) for n, support in quoted.items())


def _citation(n: int, hit: Hit, supports: Sequence[Support]) -> Citation:
    best = max(supports, key=lambda support: support.score)
    weakest = min(support.score for support in supports)
    return Citation(
        n=n,
        source=hit.source,
        title=heading(hit),
        snippet=snippet(best.window),
        headings=hit.headings,
        scores=dict(hit.scores),
        supported=all(support.enough for support in supports),
        support=round(weakest, 3),
    )
