"""Estimates a run before it starts: its texts, its actors, its time, and which step takes most of it.

By what the collection's own runs took where they tell, else by costs that were measured once. Knows no Ray and no
database.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.text.progress import describe_seconds

# Measured on two cores with the Ray documentation (docs/scale.md): fetching and storing a page, one host; embedding a
# text by the default model in int8 with two threads; publishing a chunk.
FETCH_S, EMBED_S, PUBLISH_S = 1 / 35, 1 / 85, 0.0005
TEXTS_PER_BYTE, PAGE_BYTES = 1 / 1_650, 6_600  # of compressed pages: 13,374 chunks of 3,313
# From here on a run's times tell what a text takes; and a crawl that embeds less than this share waits for its site.
LEAST_TEXTS, FEW = 200, 0.1
ACTORS_START_S = 12.0  # of Ray and its actors


@dataclass(frozen=True, slots=True)
class Costs:
    """What fetching a page and embedding a text by one actor take, in seconds, and the texts of a page; None: unknown.

    `measured` tells whether a run of the collection has shown what embedding takes.
    """

    texts_per_page: float | None = None
    fetch_s: float = FETCH_S
    embed_s: float | None = EMBED_S
    measured: bool = False

    def texts(self, pages: float, size: float) -> float:
        """Return how many texts pages of `size` compressed bytes have."""
        return size * TEXTS_PER_BYTE if self.texts_per_page is None else pages * self.texts_per_page


def costs_of(runs: Sequence[Mapping[str, Any]], index: int | None, usual: bool) -> Costs:
    """Return the costs that the last runs on an index show, newest first; `usual`: constants hold for its model."""
    counts = [run["counts"] for run in runs if run["state"] == "done" and (run["counts"] or {}).get("chunks")]
    own = [count for count in counts if index is not None and count.get("index") == index]
    embedding = [(count["chunks"]["embedded"], count["seconds"].get("encoder", 0.0)) for count in own]
    enough = [(texts, seconds) for texts, seconds in embedding if texts >= LEAST_TEXTS]
    if not enough and not usual:  # what a few texts took says too much, and more than nothing
        enough = sorted(embedding, reverse=True)[:1]
    shown = next((seconds / texts for texts, seconds in enough if texts), 0.0)
    crawling = (
        count["seconds"]["crawl_and_embed"] / count["pages"]["seen"]
        for count in own
        if count["seconds"].get("crawl_and_embed")
        and count["pages"]["seen"]
        and count["chunks"]["embedded"] <= FEW * count["chunks"]["total"]
    )
    density = next((c["chunks"]["total"] / c["pages"]["indexed"] for c in own if c["pages"]["indexed"]), None)
    return Costs(density, next(crawling, FETCH_S), shown or (EMBED_S if usual else None), bool(shown))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run is expected to take. `embed_s` and `seconds` are None where nobody knows what a text takes.

    `actors` 0 is this process alone. `bottleneck` is the step that takes longest: fetching, embedding or publishing.
    """

    pages: int
    texts: int
    actors: int
    fetch_s: float
    embed_s: float | None
    publish_s: float
    seconds: float | None
    bottleneck: str
    measured: bool

    def __str__(self) -> str:
        who = {0: "this process", 1: "1 actor"}.get(self.actors, f"{self.actors:,} actors")
        by = "measured by earlier runs" if self.measured else "a guess: the Ray documentation on two cores"
        if self.seconds is None:
            return f"{self.texts:,} texts by {who}; how long they take is not known until a run has embedded some"
        return (
            f"{self.texts:,} texts by {who}, about {describe_seconds(self.seconds)} in all, most of it "
            f"{self.bottleneck} ({by}); changed pages, and those that others lead to, come on top"
        )


def estimate(to_fetch: Sequence[int], pages: int, size: float, actors: int, costs: Costs) -> Estimate:
    """Estimate a run that fetches so many pages from each host and embeds `pages`, of `size` compressed bytes.

    Hosts are crawled at once, and pages are embedded while others are fetched.
    """
    texts = round(costs.texts(pages, size))
    fetch_s = max(to_fetch, default=0) * costs.fetch_s
    embed_s = None if costs.embed_s is None else texts * costs.embed_s / max(actors, 1) + ACTORS_START_S * bool(actors)
    publish_s = PUBLISH_S * texts
    steps = {"fetching": fetch_s, "embedding": embed_s or 0.0, "publishing": publish_s}
    seconds = None if embed_s is None and texts else max(fetch_s, embed_s or 0.0) + publish_s
    bottleneck = max(steps, key=lambda step: steps[step])
    return Estimate(pages, texts, actors, fetch_s, embed_s, publish_s, seconds, bottleneck, costs.measured)


def actors_for(pages: int, size: float, costs: Costs, within_s: float) -> int | None:
    """Return how many actors embed such pages within a time; None where nobody knows what a text takes."""
    return None if costs.embed_s is None else max(1, math.ceil(costs.texts(pages, size) * costs.embed_s / within_s))
