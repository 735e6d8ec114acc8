"""Draws 300 written questions for measuring the parts of retrieval, and those for training them.

    python -m benchmarks.draw_parts DIR

Writes DIR/written.jsonl, 300 questions about a fifth of the pages, and DIR/train.jsonl, the questions about the other
pages except those that users' questions refer to. The same files in RAYDEX_DATA give the same questions.
"""

import argparse
import random
from pathlib import Path

from benchmarks.common import data
from pipelines.evaluation.dataset import Example, read_dataset, write_dataset

COUNT, FOLDS, SEED = 300, 5, 0


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    examples = read_dataset(data("embedding_qa.json"))
    users = {page for example in read_dataset(data("eval-dev.jsonl")) for page in pages(example)}
    drawn, others = random.Random(SEED), sorted({page for example in examples for page in pages(example)} - users)
    drawn.shuffle(others)
    held_out = set(others[: len(others) // FOLDS])
    written = [example for example in examples if pages(example) <= held_out]
    drawn.shuffle(written)
    train = [example for example in examples if not pages(example) & (held_out | users)]
    for name, chosen in (("written", written[:COUNT]), ("train", train)):
        write_dataset(folder / f"{name}.jsonl", chosen)
        print(folder / f"{name}.jsonl", len(chosen))


def pages(example: Example) -> set[str]:
    """Return the pages of a question's sources."""
    return {source.partition("#")[0] for source in example.sources}


if __name__ == "__main__":
    main()
