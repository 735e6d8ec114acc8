"""`python -m jobs.train_tags`: learn which part of a site a question is about, from questions with their sources.

Held-out pages judge it, and whether hits of that part in front help decides: the folder's card.json says whether it
was accepted, and from which probability. Use it with RAYDEX_RERANKER=tag and RAYDEX_RERANKER_MODEL=FOLDER.
Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.cli import BadInput, finish, main, say
from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_retriever
from pipelines.answering.reranking.tag import OTHER, TagReranker
from pipelines.answering.retrieval.fusion import spread_pages, take_diverse
from pipelines.answering.retrieval.search import Search
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.evaluation.dataset import Example, folds, read_dataset, sample
from pipelines.records import Hit
from pipelines.training import curves, tags
from pipelines.training.card import Verdict, check_free, judged
from pipelines.training.cross_encoder import place
from pipelines.training.mining import FOLDS

NOT_ACCEPTED = 4
THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.train_tags", description=__doc__.split("\n\n")[0])
    parser.add_argument("--dataset", type=Path, required=True, help="questions with their sources, JSONL or JSON")
    parser.add_argument("--prefix", required=True, help="the site's URL: the folder after it is the part of a page")
    parser.add_argument("--corrections", type=Path, help="CSV of question, tag, correction: labelled by people")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained classifier")
    parser.add_argument("--collection", help="measure whether its hits gain (without: nothing is accepted)")
    parser.add_argument("--held-out", type=int, default=400, help="measure by so many questions (default 400; 0: all)")
    parser.add_argument("--depth", type=int, default=30, help="hits that are reranked when measuring (default 30)")
    parser.add_argument("--k", type=int, default=9, help="the gate goes by so many hits (default 9)")
    parser.add_argument("--at-least", type=int, default=tags.AT_LEAST, help="questions a part needs, else «other»")
    parser.add_argument("--folds", type=int, default=curves.FOLDS, help=f"default {curves.FOLDS}")
    parser.add_argument("--plain", choices=("ray", "none"), default="none", help="plain questions that must be right")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accept", action="store_true", help="accept it whatever the verdict; the card says so")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    check(args)
    examples = read_dataset(args.dataset)
    by_url = tags.of_examples(examples, args.prefix)
    if all(row.tag == OTHER for row in by_url):
        raise BadInput(f"--prefix is {args.prefix}: no source lies in a folder below it, as {by_url[0].page} does not")
    by_people = tags.read_corrections(args.corrections) if args.corrections else []
    rows = tags.merged([*by_url, *by_people], args.at_least)
    judgement = tags.judge(rows, args.folds, args.seed)
    say(f"accuracy on {args.folds} folds: {numbers(judgement.accuracy)}")
    measured = measure(examples, rows, args) if args.collection else None
    verdict, threshold, by_threshold = measured or (None, 0.0, [])
    classifier = tags.fit(rows)
    passed = tags.minimum(classifier, tags.RAY_QUESTIONS if args.plain == "ray" else ())
    gained = bool(verdict and verdict.accepted and not passed.failed)
    more = {
        "prefix": args.prefix,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "accepted": gained or args.accept,
        "forced": args.accept and not gained,
        "settings": {
            **tags.SHAPE,
            "at_least": args.at_least,
            "folds": args.folds,
            "seed": args.seed,
            "threshold": threshold,
        },
        "gate": asdict(verdict) if verdict else None,
        "gain_by_threshold": by_threshold,
    }
    classifier.metadata = made = tags.card(rows, judgement, passed, more)
    classifier.save(args.output, "tag")
    finish({"folder": str(args.output), "kind": "tag", **made}, args.json, shown(args.output, judgement, verdict, made))
    return 0 if made["accepted"] else NOT_ACCEPTED


def check(args: argparse.Namespace) -> None:
    """Raise BadInput and NotFree for what can't be used."""
    check_free(args.output)
    if args.folds < 2 or args.at_least < 1 or args.held_out < 0:
        raise BadInput("--folds must be at least 2, --at-least 1, and --held-out not negative")
    if not 1 <= args.k <= args.depth <= 200:
        raise BadInput(f"--k is {args.k} and --depth {args.depth}: they must be 1 to 200, --k not above --depth")


def measure(
    examples: Sequence[Example], rows: Sequence[tags.Tagged], args: argparse.Namespace
) -> tuple[Verdict, float, list[dict[str, float]]]:
    """Whether the hits of the predicted part in front help, on pages that the classifier has not seen.

    The threshold is chosen on one half of the questions, the verdict is of the other.
    """
    held_out = folds(examples, FOLDS, args.seed)[0]
    kept = [examples[p] for p in held_out]
    kept = sample(kept, args.held_out or len(kept), args.seed)
    seen = apart(rows, held_out)
    classifier = tags.fit(seen, {"prefix": args.prefix})
    with open_store() as store, contextlib.closing(make_retriever(read_configuration(), store)) as retriever:
        retriever.prepare(args.collection)
        found = [retriever.retrieve(Search((e.question,), args.collection, k=args.depth)).hits for e in kept]
    before = places(kept, found)
    after = {t: places(kept, reranked(classifier, t, kept, found)) for t in THRESHOLDS}
    half = len(kept) // 2
    best = max(THRESHOLDS, key=lambda t: (served(after[t][:half], args.k), t))
    rest = judged(before[half:], after[best][half:], args.k)
    return rest, best, [row(t, judged(before, after[t], args.k)) for t in THRESHOLDS]


def apart(rows: Sequence[tags.Tagged], held_out: Sequence[int]) -> list[tags.Tagged]:
    """Those that share neither a page nor a near-duplicate question with the rows at `held_out`."""
    group = tags.groups(rows)
    judging = {group[place] for place in held_out}
    return [row for row, of in zip(rows, group, strict=True) if of not in judging]


def reranked(
    classifier: TextClassifier, threshold: float, kept: Sequence[Example], found: Sequence[Sequence[Hit]]
) -> list[Sequence[Hit]]:
    """The hits of each question in the order of a TagReranker."""
    reranker = TagReranker(classifier, threshold)

    async def all_of_them() -> list[Sequence[Hit]]:
        return [(await reranker.rerank(e.question, hits)).hits for e, hits in zip(kept, found, strict=True)]

    return asyncio.run(all_of_them())


def places(kept: Sequence[Example], found: Sequence[Sequence[Hit]]) -> list[int]:
    """The place of the first right hit, after what the service makes of pages."""
    configuration = read_configuration()
    spread = [spread_pages(hits) if configuration.pages_first else hits for hits in found]
    cut = [take_diverse(hits, len(hits), configuration.max_per_page) for hits in spread]
    return [place(example, hits) for example, hits in zip(kept, cut, strict=True)]


def served(ranks: Sequence[int], k: int) -> int:
    return sum(0 < rank <= k for rank in ranks)


def row(threshold: float, verdict: Verdict) -> dict[str, float]:
    gain = verdict.gain
    return {
        "threshold": threshold,
        "before": verdict.before.retrieval_score.get(verdict.k, verdict.before.mrr).value,
        "gain": gain.difference,
        "low": gain.low,
        "high": gain.high,
        "mrr before": verdict.before.mrr.value,
        "mrr": verdict.after.mrr.value,
    }


def numbers(by_name: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in by_name.items())


def shown(folder: Path, judged_: tags.Judgement, verdict: Verdict | None, made: dict[str, Any]) -> str:
    """The verdict for a person."""
    plain = made["metrics"]["minimum_functionality"]
    lines = [
        f"{judged_.questions:,} questions, {judged_.folds} folds; majority {judged_.majority:.3f}, accuracy where",
        f"  folds share no page and no near-duplicate: {numbers(judged_.accuracy)}",
        f"  folds share no page: {numbers(judged_.page_disjoint)}",
        f"  folds share no question: {numbers(judged_.question_disjoint)}",
        f"  the study's way, one random fold: {numbers(judged_.study or {})}",
        f"macro AUC {judged_.macro_auc:.3f}, Brier {judged_.brier:.3f}, ECE {judged_.calibration.ece:.3f}",
        "",
        curves.as_rows([asdict(point) for point in judged_.curve]),
        "",
        f"plain questions: {plain['passed']} right, wrong {[list(failed) for failed in plain['failed']]}",
    ]
    if verdict:
        lines += ["", curves.as_rows(made["gain_by_threshold"]), f"\nthreshold {made['settings']['threshold']:g}"]
        lines += [str(verdict)]
    return "\n".join([*lines, f"{folder}: {'accepted' if made['accepted'] else 'not accepted'}"])


if __name__ == "__main__":
    main(arguments(), work)
