"""Draws 40 of the 83 users' questions for testing answers, and leaves the others for tuning.

    python benchmarks/draw_questions.py ../shared/data/eval-dev.jsonl

Writes users-test.jsonl and users-tuning.jsonl into benchmarks/questions. The same file gives the same questions.
"""

import argparse
import random
from pathlib import Path

from pipelines.evaluation.dataset import read_dataset, write_dataset

FOLDER = Path(__file__).parent / "questions"
TESTED, SEED = 40, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    examples = read_dataset(parser.parse_args().file)
    order = list(range(len(examples)))
    random.Random(SEED).shuffle(order)
    for name, chosen in (("test", order[:TESTED]), ("tuning", order[TESTED:])):
        write_dataset(FOLDER / f"users-{name}.jsonl", [examples[place] for place in sorted(chosen)])
        print(FOLDER / f"users-{name}.jsonl", len(chosen))


if __name__ == "__main__":
    main()
