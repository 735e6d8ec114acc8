"""Measures how many false claims of a small model are not supported, and how many true ones.

    python -m benchmarks.claims [--words] [--each]

The claims are those of questions/claims.jsonl: answers of Qwen2.5-Coder-1.5B about Ray, each claim graded by a person
(`true`: the passages state it; `false`: it is wrong or stated nowhere; `null`: not judged). Prints both shares for the
answers that the rules were tuned on and for the others. `--each` shows the claims of the tuning set that are judged
wrongly; with `--words` no vectors are compared.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.answering.grounding.support import Embed, Passages
from pipelines.answering.writing.attribution import Attributor
from pipelines.answering.writing.citations import CheckedStatement
from pipelines.answering.writing.stages.text import read_text
from pipelines.embedding.load import load_embedder
from pipelines.records import Hit

CLAIMS = Path(__file__).parent / "questions" / "claims.jsonl"


def read_claims() -> tuple[dict[int, Hit], list[dict[str, Any]]]:
    """Return the passages by their numbers, and the answers with their graded claims."""
    rows = [json.loads(line) for line in CLAIMS.read_text(encoding="utf-8").splitlines()]
    passages = {row["passage"]: _hit(row) for row in rows if "passage" in row}
    return passages, [row for row in rows if "answer" in row]


def _hit(row: Mapping[str, Any]) -> Hit:
    page, _, _ = row["source"].partition("#")
    title = row["headings"][0] if row["headings"] else ""
    url, text = f"https://ray.test/{page}", row["text"]
    return Hit(
        f"p{row['passage']}", url, (), title, tuple(row["headings"]), text, row["source"], 0.0, "none", plain=text
    )


async def check_answer(row: Mapping[str, Any], hits: Sequence[Hit], embed: Embed | None) -> list[CheckedStatement]:
    """Return the claims of an answer as they are checked while it is written."""
    attributor = Attributor(Passages(hits, embed, row["question"]), lambda _: None)
    await attributor.feed(read_text(row["answer"]))
    return [one for one in attributor.checked if one.is_claim]


def make_embed() -> Embed:
    """Return the vectors of the model that comes with the install."""
    embedder = load_embedder("all-MiniLM-L6-docs-v1")

    async def embed(texts: Sequence[str]) -> np.ndarray:
        return embedder.embed_chunks(list(texts)).astype(np.float32)

    return embed


async def measure(embed: Embed | None, *, each: bool) -> dict[tuple[str, bool], list[bool]]:
    """Return whether each claim is flagged, by the use of its answer and its grade."""
    passages, answers = read_claims()
    flagged: dict[tuple[str, bool], list[bool]] = defaultdict(list)
    for row in answers:
        checked = await check_answer(row, [passages[n] for n in row["passages"]], embed)
        for one, claim in zip(checked, row["claims"], strict=True):
            if claim["true"] is None:
                continue
            flagged[row["use"], claim["true"]].append(not one.supported)
            if each and row["use"] == "tuning" and claim["true"] is not one.supported:
                print(f"{row['id']}: {'true' if claim['true'] else 'false'}, {one.why or 'by words'}: {claim['text']}")
    return flagged


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", action="store_true", help="compare no vectors")
    parser.add_argument("--each", action="store_true", help="show what is judged wrongly of the tuning set")
    args = parser.parse_args()
    flagged = asyncio.run(measure(None if args.words else make_embed(), each=args.each))
    for use in ("tuning", "test"):
        for grade in (False, True):
            found = flagged[use, grade]
            share = sum(found) / len(found)
            print(f"{use:7} {'true' if grade else 'false':6} flagged {sum(found):3} of {len(found):3}  {share:.3f}")


if __name__ == "__main__":
    main()
