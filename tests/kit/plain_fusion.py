"""Implements textbook reciprocal rank fusion on whole hits, as a reference for the fast version."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pipelines.records import Hit

Weigh = Callable[[Hit], float]
PlainList = tuple[str, Sequence[Hit], float]  # leg, hits, weight


def fuse_plainly(lists: Sequence[PlainList], k: int, prior: Weigh, preferred: Weigh) -> list[Hit]:
    """Return all hits, best first. Among equal texts, return the preferred one with the sources of all."""
    texts: dict[str, dict] = {}
    for leg, hits, weight in lists:
        groups: dict[str, list[Hit]] = {}
        for hit in sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id)):
            groups.setdefault(hit.text_hash, []).append(hit)
        for rank, group in enumerate(groups.values(), start=1):
            first = sorted(group, key=lambda hit: -preferred(hit))[0]
            text = texts.setdefault(
                first.text_hash, {"score": 0.0, "ranks": {}, "scores": {}, "hits": [], "firsts": []}
            )
            text["score"] += weight / (k + rank / prior(first))
            text["hits"] += group
            text["firsts"].append((-preferred(first), rank, first.chunk_id, first))
            best = (text["ranks"].get(leg, rank), -text["scores"].get(leg, first.score))
            if leg not in text["ranks"] or (rank, -first.score) < best:
                text["ranks"][leg], text["scores"][leg] = rank, first.score
    fused = [_as_hit(text) for text in texts.values()]
    return [hit for _, hit in sorted(fused, key=lambda one: one[0])]


def _as_hit(text: dict) -> tuple[tuple[float, int, str, str], Hit]:
    """Return a text's hit and its sort key."""
    _, rank, name, first = min(text["firsts"], key=lambda one: one[:3])
    score = float(f"{text['score']:.11e}")
    sources = [first.source, *sorted({hit.source for hit in text["hits"]} - {first.source})]
    scores = {**text["scores"], "rrf": score}
    hit = replace(first, score=score, score_kind="rrf", ranks=text["ranks"], scores=scores, sources=tuple(sources))
    return (-score, rank, name, first.text_hash), hit
