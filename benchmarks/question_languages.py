"""Compares the detection of a question's language with lingua on the same questions.

    pip install lingua-language-detector
    python -m benchmarks.question_languages [--distance 0.0] [--low] [--confused]

Questions: benchmarks/questions/question-languages.jsonl (400 short ones about software in 12 languages, with code and
English names), languages.jsonl (22 languages), and users' questions in English from RAYDEX_DATA. Prints right, wrong
and unsure per language, milliseconds of CPU per question, and the memory that the detector adds.
"""

import argparse
import importlib
import json
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import data
from pipelines.text import detection

SETS = Path(__file__).parent / "questions"
Detect = Callable[[str], str]
Row = dict[str, Any]


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def resident_mb() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def make_lingua(tags: Sequence[str], distance: float, low: bool) -> Detect:
    """Return lingua's detector for some languages. Words of code are removed first, as in `find_language`."""
    lingua = importlib.import_module("lingua")
    codes = [getattr(lingua.IsoCode639_1, "NB" if tag == "no" else tag.upper()) for tag in tags]
    builder = lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes).with_minimum_relative_distance(distance)
    detector = (builder.with_low_accuracy_mode() if low else builder).build()

    def detect(text: str) -> str:
        prose = re.sub(r'"[A-Za-z][^"]*"', " ", text)
        prose = " ".join(word for word in prose.split() if not detection._is_code(word))
        found = detector.detect_language_of(prose)
        tag = found.iso_code_639_1.name.lower() if found else ""
        return "no" if tag == "nb" else tag

    return detect


def outcome(found: str, language: str) -> str:
    """Return whether a detection is right, wrong or unsure; "und" names no language."""
    return "right" if found == language else "unsure" if found in ("", "und") else "wrong"


def score(detect: Detect, rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """Return the outcomes per language."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["language"], Counter())[outcome(detect(row["question"]), row["language"])] += 1
    return found


def show(counts: Counter[str]) -> str:
    return f"{counts['right']} / {counts['wrong']} / {counts['unsure']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true", help="measure Raydex instead of lingua")
    parser.add_argument("--distance", type=float, default=0.0, help="lingua's minimum relative distance")
    parser.add_argument("--low", action="store_true", help="lingua's low accuracy mode")
    parser.add_argument("--languages", default="", help="lingua's candidates; default: those of the questions")
    parser.add_argument("--confused", action="store_true", help="print each wrong detection")
    args = parser.parse_args()

    rows = rows_of(SETS / "question-languages.jsonl")
    more = rows_of(SETS / "languages.jsonl")
    users = [
        row["question"] for name in ("eval-dev.jsonl", "routing-dataset-train.jsonl") for row in rows_of(data(name))
    ]
    tags = args.languages.split(",") if args.languages else list(dict.fromkeys(row["language"] for row in rows))
    before, began = resident_mb(), time.process_time()
    detect = detection.find_language if args.ours else make_lingua(tags, args.distance, args.low)
    detect("How do I create an index?")
    first = time.process_time() - began
    counts = score(detect, rows)
    began = time.process_time()
    for row in rows:
        detect(row["question"])
    each = (time.process_time() - began) / len(rows)
    memory = resident_mb() - before
    mistaken = [user for user in users if detect(user) not in ("en", "", "und")]
    print("Raydex" if args.ours else f"lingua {'low' if args.low else 'high'} {args.distance} {len(tags)} languages")
    print("  " + "; ".join(f"{tag} {show(counts[tag])}" for tag in counts))
    print(f"  all {show(sum(counts.values(), Counter()))}; foreign of {len(users):,} users' questions: {len(mistaken)}")
    known = [row for row in more if row["language"] in tags] if not args.ours else more
    print(f"  languages.jsonl {show(sum(score(detect, known).values(), Counter()))} of {len(known)}")
    print(f"  first {first * 1000:.0f} ms, then {each * 1000:.3f} ms, +{memory:.0f} MB")
    if args.confused:
        for row in rows:
            if outcome(found := detect(row["question"]), row["language"]) != "right":
                print(f"    {row['language']} -> {found or '?'}: {row['question']}")
        print("\n".join(f"    user -> {detect(user)}: {user[:150]}" for user in mistaken[:60]))


if __name__ == "__main__":
    main()
