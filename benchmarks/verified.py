"""Measures verified answers: how often they are given correctly, how often at all, and the cost of the look-up.

    python -m benchmarks.verified                            # the table of benchmarks/results/verified-answers.md
    python -m benchmarks.verified --questions asked.jsonl    # prints the pairs of questions that would share an answer
    python -m benchmarks.verified --answers 200              # seconds of a question to a collection with so many

Questions at odd positions in questions/same-meaning.jsonl were used for choosing the words; the others were not.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.answering.verified.answer_finder import VerifiedFinder
from pipelines.answering.verified.sections import pin
from pipelines.answering.verified.similarity import SHARED_WORDS, SIMILAR, Meaning, may_mean_same, wording_key
from pipelines.embedding.load import load_embedder
from pipelines.evaluation.dataset import read_questions
from pipelines.records import Hit, Index, IndexSettings, digest
from pipelines.store import VerifiedAnswer, VerifiedMark

SET = Path(__file__).parent / "questions" / "same-meaning.jsonl"
COSINES, SHARES = (0.80, 0.85, 0.90, 0.92, 0.94), (0.0, 0.5, SHARED_WORDS, 0.75)
HIT = Hit("c", "https://d.test/a", ("b",), "A", ("B",), "Text.", digest("Text."), 1.0, "cosine")
INDEX = Index(1, "docs", IndexSettings(), "live", 1)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="all-MiniLM-L6-docs-v1")
    parser.add_argument("--questions", type=Path, help="questions of users")
    parser.add_argument("--answers", type=int, help="verified answers of a collection")
    return parser


class Embed:
    """Embeds questions like the service."""

    def __init__(self, model: str) -> None:
        self._embedder = load_embedder(model)

    async def __call__(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        vectors = np.asarray(self._embedder.embed_chunks(texts), np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Answered:
    """A store whose collection has these answers."""

    def __init__(self, questions: Sequence[str]) -> None:
        self._answers = [
            VerifiedAnswer("docs", (question,), "Yes. [1]", (pin(HIT.source, HIT),), n)
            for n, question in enumerate(questions, 1)
        ]

    def live_index(self, collection: str) -> Index:
        return INDEX

    def collections(self) -> list[dict[str, object]]:
        return [{"name": "docs", "is_default": True, "index": 1}]

    def verified_mark(self, collection: str) -> VerifiedMark:
        return VerifiedMark(len(self._answers))

    def verified_answers(self, collection: str) -> list[VerifiedAnswer]:
        return self._answers

    def chunks_of_pages(self, index: int, urls: set[str]) -> list[Hit]:
        return [HIT]


def measure_pairs(embed: Embed) -> None:
    """Print precision and recall by threshold, of the odd and of the even questions."""
    rows = [json.loads(line) for line in SET.read_text().splitlines()]
    pairs: list[list[tuple[bool, float, str, str]]] = [[], []]
    for place, row in enumerate(rows):
        vectors = asyncio.run(embed([row["question"], *row["same"], *row["other"]]))
        others = [*((text, True) for text in row["same"]), *((text, False) for text in row["other"])]
        for (text, same), vector in zip(others, vectors[1:], strict=True):
            pairs[place % 2].append((same, float(vectors[0] @ vector), row["question"], text))
    print("cosine  words   odd: precision recall   even: precision recall")
    for words in (None, *SHARES):
        for cosine in COSINES:
            cells = [_score(half, cosine, words) for half in pairs]
            name = "no guard" if words is None else f"{words:.2f}"
            print(f"{cosine:.2f}   {name:8}" + "".join(f"      {p:.3f}  {r:.3f}     " for p, r in cells))


def _score(pairs: Sequence[tuple[bool, float, str, str]], cosine: float, words: float | None) -> tuple[float, float]:
    given = [
        same
        for same, similarity, one, other in pairs
        if similarity >= cosine and (words is None or may_mean_same(Meaning.of(one), Meaning.of(other), words))
    ]
    return sum(given) / max(1, len(given)), sum(given) / sum(same for same, *_ in pairs)


def print_pairs(embed: Embed, questions: Sequence[str]) -> None:
    """Print the pairs of users' questions of which one would get the other's answer, for manual review."""
    once = list({wording_key(question): question for question in questions}.values())
    vectors, meanings = asyncio.run(embed(once)), [Meaning.of(question) for question in once]
    cosines = vectors @ vectors.T
    near = [(i, j) for i, j in zip(*np.where(np.triu(cosines, 1) >= SIMILAR), strict=True)]
    given = [(i, j) for i, j in near if may_mean_same(meanings[i], meanings[j])]
    for i, j in sorted(given, key=lambda pair: -cosines[pair]):
        print(f"{cosines[i, j]:.2f}  {once[i]}\n      {once[j]}")
    print(f"{len(once):,} questions, {len(near):,} pairs from {SIMILAR} on, {len(given):,} of them share an answer")


def measure_cost(embed: Embed, count: int) -> None:
    """Print the milliseconds of looking up a verified answer among none and among `count`."""
    asked = [row["other"][0] for row in map(json.loads, SET.read_text().splitlines())]
    questions = [f"How do I set option_{n} of part {n}?" for n in range(count - 1)] + [asked[0]]
    for name, answers in (("none", []), (f"{count:,}", questions)):
        book = VerifiedFinder(Answered(answers), embed)
        asyncio.run(book.find("warm up"))
        began = time.perf_counter()
        for question in asked[1:]:
            asyncio.run(book.find(question))
        each = (time.perf_counter() - began) / len(asked[1:])
        print(f"{name} verified answers: {each * 1000:.2f} ms a question that gets none of them")


def main() -> None:
    args = arguments().parse_args()
    embed = Embed(args.model)
    if args.questions:
        print_pairs(embed, read_questions(args.questions))
    elif args.answers:
        measure_cost(embed, args.answers)
    else:
        measure_pairs(embed)


if __name__ == "__main__":
    main()
