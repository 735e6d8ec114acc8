"""The numbers in an answer become citations, each with how well its passage bears out what is claimed.

Knows texts, words and vectors; no model, no prompt and no HTTP. docs/citations.md has the method and its figures.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.answering.synthesis.extractive import heading, snippet
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Citation, Hit

Embed = Callable[[Sequence[str]], np.ndarray]

# By words, benchmarks/support.py: 0.475 is best on 548 pairs (balanced accuracy 0.82), 0.5 keeps 0.76 of the claims
# and refuses 0.88 of the others. The threshold of both together is not measured yet; it is the same until then.
SUPPORTED, SUPPORTED_BY_WORDS = 0.5, 0.5

# Share of a claim's words that the passages cited for it hold together.
TOGETHER = 0.8

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


@dataclass(frozen=True, slots=True)
class Claim:
    """What an answer says with `numbers` behind it."""

    text: str
    numbers: tuple[int, ...]


def claims(text: str) -> Iterator[Claim]:
    """The cited claims of `text`, in order: the sentence, list item or code block before a group of numbers.

    A sentence that begins with its number is claimed by it. Brackets in code are no citations.
    """
    hidden = _SPAN.sub(_masked, _FENCED.sub(_masked, text))
    begin = 0
    for block in [*_BLOCK.finditer(hidden), None]:
        end = block.start() if block else len(hidden)
        yield from _claims(text, hidden, begin, end)
        begin = block.end() if block else end


def _masked(code: re.Match[str]) -> str:
    """Code without what could be a number, a sentence's or a block's end; as long as before."""
    return re.sub(r"[^\w]", "x", code[0])


def _claims(text: str, hidden: str, begin: int, end: int) -> Iterator[Claim]:
    """The claims of one paragraph or list item."""
    last = begin
    for group in _GROUP.finditer(hidden, begin, end):
        numbers = tuple(dict.fromkeys(int(n) for n in _NUMBER.findall(group[0])))
        before = hidden[last : group.start()].rstrip()
        cuts = [cut.end() for cut in _SENTENCE.finditer(before)]
        said = text[last + (cuts[-1] if cuts else 0) : last + len(before)]
        if not terms(said):
            said = _said_elsewhere(text, hidden, begin, group, end)
        yield Claim(" ".join(_GROUP.sub("", said).split()), numbers)
        if _SENTENCE.match(hidden, group.end()) or before.endswith((".", "!", "?")):
            last = group.end()
    return


def _said_elsewhere(text: str, hidden: str, begin: int, group: re.Match[str], end: int) -> str:
    """The claim of numbers with no words before them: the rest of the sentence, else the block before."""
    after = _GROUP.split(_SENTENCE.split(hidden[group.end() : end].lstrip(), maxsplit=1)[0], maxsplit=1)[0]
    if terms(after):
        at = hidden.find(after, group.end())
        return text[at : at + len(after)]
    return text[:begin].rstrip().rsplit("\n\n", 1)[-1]


def cite(text: str, hits: Sequence[Hit], embed: Embed | None = None) -> tuple[Citation, ...]:
    """The citations of `text` in order of appearance; `[n]` is `hits[n - 1]`, numbers beyond the hits are passed over.

    `embed` gives rows of length 1 for texts; without it, or where it fails, words alone judge. A citation is
    supported if each of its claims is: by its own passage, or by those cited beside it if it adds words to them.
    `support` is that of its weakest claim.
    """
    found = [Claim(claim.text, tuple(n for n in claim.numbers if 1 <= n <= len(hits))) for claim in claims(text)]
    pairs = [(claim, n) for claim in found for n in claim.numbers]
    judged = _judged(pairs, hits, embed)
    cited: dict[int, list[tuple[float, bool, str]]] = {}
    for (_, n), verdict in zip(pairs, judged, strict=True):
        cited.setdefault(n, []).append(verdict)
    return tuple(_citation(n, hits[n - 1], verdicts) for n, verdicts in cited.items())


def _citation(n: int, hit: Hit, verdicts: Sequence[tuple[float, bool, str]]) -> Citation:
    support, best = min(v[0] for v in verdicts), max(verdicts, key=lambda verdict: verdict[0])[2]
    supported = all(v[1] for v in verdicts)
    shown = snippet(best)
    return Citation(n, hit.source, heading(hit), shown, hit.headings, dict(hit.scores), supported, round(support, 3))


def words_share(claim: str, passage: str) -> float:
    """The share of a claim's content words, names in parts too, that stand in `passage`; 1 for a claim of none."""
    said = content(claim)
    return len(said & frozenset(terms(passage))) / len(said) if said else 1.0


def content(text: str) -> frozenset[str]:
    """The distinct terms of `text` that say something."""
    return frozenset(terms(text)) - STOP_TERMS


def best_window(claim: str, passage: str) -> str:
    """The part of a passage, about two sentences long, that shares most words with `claim`; the first of equals."""
    words = list(re.finditer(r"\S+", passage))
    said = content(claim)
    starts = range(0, max(len(words) - STEP, 1), STEP)
    spans = (
        [passage[words[s].start() : words[min(s + WINDOW, len(words)) - 1].end()] for s in starts] if words else [""]
    )
    return max(spans, key=lambda span: len(said & frozenset(terms(span))))


def _judged(
    pairs: Sequence[tuple[Claim, int]], hits: Sequence[Hit], embed: Embed | None
) -> list[tuple[float, bool, str]]:
    """Support, whether that is enough, and the window that bears the claim out, of each claim and number."""
    windows = [best_window(claim.text, hits[n - 1].passage) for claim, n in pairs]
    cosines = _cosines([claim.text for claim, _ in pairs], windows, embed)
    threshold = SUPPORTED_BY_WORDS if cosines is None else SUPPORTED
    judged = []
    for at, ((claim, n), window) in enumerate(zip(pairs, windows, strict=True)):
        share = words_share(claim.text, full_text(hits[n - 1]))
        support = share if cosines is None else combined(share, cosines[at])
        judged.append((support, support >= threshold or _together(claim, n, hits), window))
    return judged


def combined(share: float, cosine: float) -> float:
    """Support from words and vectors, 0 to 1: their mean, a negative cosine being none."""
    return (share + min(max(cosine, 0.0), 1.0)) / 2


def full_text(hit: Hit) -> str:
    """A hit's headings, title and passage, as words are looked for in it."""
    return f"{heading(hit)} {hit.title}\n{hit.passage}"


def _together(claim: Claim, n: int, hits: Sequence[Hit]) -> bool:
    """Whether all passages cited for a claim bear it out by words together, and n adds to the others."""
    said = content(claim.text)
    own = {m: said & frozenset(terms(full_text(hits[m - 1]))) for m in claim.numbers}
    others = frozenset().union(*(own[m] for m in own if m != n))
    return len(own) > 1 and bool(own[n] - others) and len(own[n] | others) >= TOGETHER * len(said)


def _cosines(said: Sequence[str], windows: Sequence[str], embed: Embed | None) -> list[float] | None:
    """The cosine of each claim with its window, all embedded in one call; None where that is not to be had."""
    if embed is None or not said:
        return None
    texts = list(dict.fromkeys([*said, *windows]))
    try:
        vectors = dict(zip(texts, np.asarray(embed(texts)), strict=True))
        cosines = [float(vectors[one] @ vectors[other]) for one, other in zip(said, windows, strict=True)]
    except Exception:  # any failure of a model costs the vectors, never the answer
        return None
    return cosines if np.isfinite(cosines).all() else None
