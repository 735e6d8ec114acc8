"""`python -m jobs.train_router`: learn from labelled questions which of them the cheap model answers well enough.

Questions it has not seen judge it: the folder's card.json says whether it was accepted. Use it with
RAYDEX_ROUTER=classifier and RAYDEX_ROUTER_MODEL=FOLDER, at the threshold it was judged at (--threshold).
Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.cli import BadInput, finish, main
from pipelines.training import curves, router
from pipelines.training.card import check_free

NOT_ACCEPTED = 4


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.train_router", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--dataset", type=Path, required=True, help='JSONL of {"question", "target": 1 = cheap will do}'
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained router")
    parser.add_argument("--threshold", type=float, default=0.8, help="the gate goes by this threshold (default 0.8)")
    parser.add_argument("--folds", type=int, default=curves.FOLDS, help=f"default {curves.FOLDS}")
    parser.add_argument("--strong-cost", type=float, default=router.STRONG_COST, help="of an answer (default 30)")
    parser.add_argument("--cheap-cost", type=float, default=router.CHEAP_COST, help="of an answer (default 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accept", action="store_true", help="accept it whatever the verdict; the card says so")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    check_free(args.output)
    if not 0 <= args.threshold <= 1 or args.folds < 2:
        raise BadInput("--threshold is a probability from 0 to 1, --folds at least 2")
    if not (0 <= args.strong_cost < math.inf and 0 <= args.cheap_cost < math.inf):
        raise BadInput("--strong-cost and --cheap-cost must be numbers from 0 on")
    rows = router.read_labelled(args.dataset)
    probabilities = router.probabilities(rows, args.folds, args.seed)
    judgement = router.judge(
        rows,
        probabilities,
        threshold=args.threshold,
        folds=args.folds,
        strong=args.strong_cost,
        cheap=args.cheap_cost,
    )
    settings = {"threshold": args.threshold, "folds": args.folds, "seed": args.seed}
    made = router.card(rows, judgement, settings, args.accept)
    made["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    router.fit(rows, made).save(args.output, "router")
    finish({"folder": str(args.output), "kind": "router", **made}, args.json, shown(args.output, judgement, made))
    return 0 if made["accepted"] else NOT_ACCEPTED


def shown(folder: Path, judged: router.Judgement, made: dict[str, Any]) -> str:
    """The verdict for a person."""
    gain, area = judged.gain, made["metrics"]["area"]
    word = "" if made["accepted"] else "not "
    lines = [
        f"{judged.questions:,} questions, for {judged.suffices:,} the cheap model suffices; {judged.folds} folds",
        f"AUC {judged.auc:.3f}; accuracy {judged.accuracy:.3f}, majority {judged.majority:.3f}",
        f"Brier {judged.brier:.3f} (of the rate {judged.brier_of_rate:.3f}), ECE {judged.calibration.ece:.3f}",
        f"confusion (true: said) {judged.confusion}",
        "",
        curves.as_rows([asdict(point) for point in judged.costs]),
        "",
        f"area {area['served']:.3f}, by chance {area['random']:.3f}, of one that knows {area['perfect']:.3f}",
        f"gain over chance {gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], p = {gain.p:.4f}",
        f"{folder}: {word}accepted at the threshold {made['settings']['threshold']:g}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main(arguments(), work)
