"""Estimates a run before it starts: its texts, actors and time, and which step takes longest.

The costs come from the collection's own runs if possible, otherwise from constants that were measured once. This module
knows no Ray and no database.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.text.counts import counted
from pipelines.text.progress import describe_seconds

# Seconds, measured on two cores with the Ray documentation (docs/scale.md): fetching and storing a page from one host;
# embedding a text with the default model in int8 and two threads; publishing a chunk.
FETCH_S, EMBED_S, PUBLISH_S = 1 / 35, 1 / 85, 0.0005
TEXTS_PER_BYTE, PAGE_BYTES = 1 / 1_650, 6_600  # bytes of compressed pages: 13,374 chunks of 3,313 pages
# From this many texts on, a run's times are reliable. A crawl that embeds less than this share mostly waits for its
# site.
LEAST_TEXTS, FEW = 200, 0.1
ACTORS_START_S = 12.0  # Ray and its actors


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds to fetch a page and for one actor to embed a text, and the texts per page; None: unknown.

    `measured` says whether a run of the collection has shown the cost of embedding.
    """

    texts_per_page: float | None = None
    fetch_s: float = FETCH_S
    embed_s: float | None = EMBED_S
    measured: bool = False

    def texts(self, pages: float, size: float) -> float:
        """Return how many texts pages of `size` compressed bytes have."""
        return size * TEXTS_PER_BYTE if self.texts_per_page is None else pages * self.texts_per_page


def costs_of(runs: Sequence[Mapping[str, Any]], index: int | None, usual: bool) -> Costs:
    """Return the costs shown by the last runs on an index, newest first; `usual`: the constants apply to its model."""
    counts = [run["counts"] for run in runs if run["state"] == "done" and (run["counts"] or {}).get("chunks")]
    own = [count for count in counts if index is not None and count.get("index") == index]
    embedding = [(count["chunks"]["embedded"], count["seconds"].get("encoder", 0.0)) for count in own]
    enough = [(texts, seconds) for texts, seconds in embedding if texts >= LEAST_TEXTS]
    if not enough and not usual:  # the time of a few texts overestimates, but is better than nothing
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
    """The expected cost of a run. `embed_s` and `seconds` are None if the cost of a text is unknown.

    `actors` 0 means that this process does the work. `bottleneck` is the slowest step: fetching, embedding or
    publishing.
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
        who = counted(self.actors, "actor") if self.actors else "this process"
        by = "measured by earlier runs" if self.measured else "a guess: the Ray documentation on two cores"
        if self.seconds is None:
            return (
                f"{counted(self.texts, 'text')} by {who}; how long they take is not known until a run has embedded some"
            )
        return (
            f"{counted(self.texts, 'text')} by {who}, about {describe_seconds(self.seconds)} in all, most of it "
            f"{self.bottleneck} ({by}); changed pages, and pages found through links, are extra"
        )


def estimate(to_fetch: Sequence[int], pages: int, size: float, actors: int, costs: Costs) -> Estimate:
    """Estimate a run that fetches `to_fetch` pages from each host and embeds `pages`, of `size` compressed bytes.

    Hosts are crawled in parallel, and pages are embedded while others are fetched.
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
    """Return how many actors can embed these pages within a time; None if the cost of a text is unknown."""
    return None if costs.embed_s is None else max(1, math.ceil(costs.texts(pages, size) * costs.embed_s / within_s))
