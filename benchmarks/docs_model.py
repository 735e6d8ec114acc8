"""Trains the weight changes that turn all-MiniLM-L6-v2 into all-MiniLM-L6-docs-v1 (low_rank.py).

    python benchmarks/docs_model.py FILE.safetensors [--questions FILE] [--held-out SITE …] [--device cuda]

The code that applies the changes is pipelines/embedding/low_rank.py. The 11,296 questions
(benchmarks/questions/tuning.jsonl), two for each of 5,648 sections of 31 sites, were written by a language model that
read the section: one in a reader's own words, one as people type. Each site is a collection in this RAYDEX_HOME,
indexed with all-MiniLM-L6-v2 from this folder of its repository, with https://NAME.test/ as base URL:

    aiohttp, psycopg, drf (django-rest-framework), poetry, scrapy, rabbitmq, sequelize: docs
    ansible: docs/docsite/rst    dask, datasets (Hugging Face), jupyterhub: docs/source    pip: docs/html
    celery: docs/{userguide,getting-started,django,reference}    electron: docs    laravel, symfony: all
    express: src/content/docs/en    hugo: content/en    loki: docs/sources    minio: source    nest: content
    playwright, prefect: docs/src, docs/v3    pytest: doc/en    redis: content/{develop,operate/oss_and_stack}
    rustbook: src    sqlalchemy: doc/build    svelte: documentation/docs    tokio: content/tokio    vue: src
    webpack: src/content

None of them is a site in sections.jsonl, sections-more.jsonl or the users' questions, which judge the model. Held-out
sites select between models and are not trained on.

A question is trained against the other sections of its batch, which are from the same site, and five of the 25 nearest
ones of its site ("mined negatives": Karpukhin et al., Dense passage retrieval, 2020). Nearly equal texts are not used
as negatives. The file that comes with Raydex was made on one H200 by these steps, and one more epoch with negatives
found by the resulting model and a learning rate of 4e-4.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from jobs.environment import open_store
from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.torch import load_modules
from pipelines.store import Store
from pipelines.training.low_rank import CHANGE_SCALE, ThinChange, add_thin_changes
from pipelines.training.mining import embedding_text

QUESTIONS = Path(__file__).parent / "questions" / "tuning.jsonl"
BASE = "all-MiniLM-L6-v2"
RANK, RATE, EPOCHS, BATCH = 16, 1e-3, 2, 128
NEGATIVES, DRAWN_FROM, SCALE = 5, 25, 20.0
# Texts with at least this cosine are not negatives of each other: copies, versions of a page.
SAME_SITE, SAME_BATCH = 0.88, 0.92


@dataclass(frozen=True)
class Site:
    """A collection's texts, their sections, and its questions with the index of the text that answers each."""

    name: str
    texts: Sequence[str]
    sections: Sequence[str]
    questions: Sequence[tuple[str, int]]


def read_sites(store: Store, questions: Path) -> list[Site]:
    """Return the sites that the questions are about. Raises NoLiveIndex."""
    asked = defaultdict(list)
    for row in map(json.loads, questions.read_text("utf-8").splitlines()):
        asked[row["collection"]].append((row["question"], row["source"]))
    sites = []
    for name, rows in asked.items():
        with store.scan_chunks(store.live_index(name).id) as (_, chunks):
            texts = {embedding_text(hit): hit.source for hit in chunks}
        places = {source: place for place, source in reversed(list(enumerate(texts.values())))}
        known = [(question, places[source]) for question, source in rows if source in places]
        sites.append(Site(name, list(texts), list(texts.values()), known))
        print(f"{name}: {len(texts):,} texts, {len(known):,} of {len(rows):,} questions", flush=True)
    return sites


def encode(model: Any, texts: Sequence[str]) -> torch.Tensor:
    """Return the vectors of texts, (texts, dimension), with gradients."""
    return torch.nn.functional.normalize(model(on_device(model, texts))["sentence_embedding"], dim=1)


def on_device(model: Any, texts: Sequence[str]) -> dict[str, Any]:
    read = model.tokenize(list(texts))  # tensors, and the kind of input
    return {name: value.to(model.device) if torch.is_tensor(value) else value for name, value in read.items()}


def vectors(model: Any, texts: Sequence[str]) -> torch.Tensor:
    """Return the current vectors of texts, (texts, dimension)."""
    return model.encode(list(texts), convert_to_tensor=True, normalize_embeddings=True, batch_size=256)


def mine(model: Any, site: Site) -> list[list[int]]:
    """Return the nearest texts that do not answer each question of a site, nearest first."""
    texts, questions = vectors(model, site.texts), vectors(model, [question for question, _ in site.questions])
    nearest = (questions @ texts.T).topk(min(60, len(texts)), dim=1).indices
    right = texts[[place for _, place in site.questions]]
    near = (right[:, None] * texts[nearest]).sum(-1)
    return [[p for p, cosine in zip(*row, strict=True) if cosine < SAME_SITE][:DRAWN_FROM]
            for row in zip(nearest.tolist(), near.tolist(), strict=True)]  # fmt: skip


def batches(sites: Sequence[Site], rng: random.Random) -> list[tuple[Site, list[int]]]:
    """Return an epoch's questions in batches of one site each."""
    made = []
    for site in sites:
        order = rng.sample(range(len(site.questions)), len(site.questions))
        made += [(site, order[n : n + BATCH]) for n in range(0, len(order), BATCH)]
    return rng.sample(made, len(made))


def loss(
    model: Any, site: Site, batch: Sequence[int], wrong: Sequence[Sequence[int]], rng: random.Random
) -> torch.Tensor:
    """Return the mean cross-entropy of each question's right text among all texts of the batch."""
    right = [site.questions[n][1] for n in batch]
    hard = [place for n in batch for place in rng.sample(wrong[n], min(NEGATIVES, len(wrong[n])))]
    places = sorted({*right, *hard})
    column = torch.tensor([places.index(place) for place in right], device=model.device)
    texts = encode(model, [site.texts[place] for place in places])
    odds = encode(model, [site.questions[n][0] for n in batch]) @ texts.T * SCALE
    same = texts.detach()[column] @ texts.detach().T > SAME_BATCH
    same[torch.arange(len(batch)), column] = False
    return torch.nn.functional.cross_entropy(odds.masked_fill(same, -1e4), column)


def train(model: Any, layers: dict[str, ThinChange], sites: Sequence[Site], epochs: int) -> None:
    """Train the low-rank layers. The learning rate rises for a tenth of the steps, then falls to 0."""
    rng, wrong = random.Random(1), {site.name: mine(model, site) for site in sites}
    weights = [weight for layer in layers.values() for weight in (layer.a, layer.b)]
    optimizer = torch.optim.AdamW(weights, lr=RATE, weight_decay=0.01)
    steps = [batch for _ in range(epochs) for batch in batches(sites, rng)]
    model.train()
    for n, (site, batch) in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (n + 1) / (0.1 * len(steps))) * (1 - n / len(steps))
        optimizer.zero_grad()
        value = loss(model, site, batch, wrong[site.name], rng)
        value.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if n % 20 == 0:
            print(f"step {n} of {len(steps)}: {value.item():.3f}", flush=True)


def judge(model: Any, sites: Sequence[Site]) -> float:
    """Return the share of questions whose nearest text is in the right section."""
    found = []
    for site in sites:
        texts, asked = vectors(model, site.texts), vectors(model, [question for question, _ in site.questions])
        best = (asked @ texts.T).argmax(dim=1).tolist()
        found += [site.sections[b] == site.sections[place] for b, (_, place) in zip(best, site.questions, strict=True)]
    return sum(found) / max(1, len(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--held-out", nargs="*", default=["scrapy", "rabbitmq", "webpack"])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(1)
    with open_store() as store:
        sites = read_sites(store, args.questions)
    model = load_modules(load_tokenizer(BASE), device=args.device)
    held_out = [site for site in sites if site.name in args.held_out]
    print(f"before: {judge(model, held_out):.4f}")
    layers = add_thin_changes(model, RANK)
    train(model, layers, [site for site in sites if site not in held_out], args.epochs)
    print(f"after: {judge(model.eval(), held_out):.4f}")
    kept = {f"{name}.a": layer.a for name, layer in layers.items()}
    kept |= {f"{name}.b": layer.b * CHANGE_SCALE for name, layer in layers.items()}
    save_file({name: value.detach().half().contiguous().cpu() for name, value in sorted(kept.items())}, args.file)


if __name__ == "__main__":
    main()
