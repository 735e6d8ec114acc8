r"""Fits the weights for ordering hits, and measures them on sites that were not used for fitting.

    python benchmarks/ranking.py [--questions FILE] [--fit]

The questions (340, benchmarks/questions/sections.jsonl; 1,079 more in sections-more.jsonl) were written in readers'
words, each from one section of a site and before any search. 1,463 (blind.jsonl) were written only from its headings.
Each site is a collection in this RAYDEX_HOME, indexed from its sources:

    raydex index --path /usr/share/doc/git-doc --base-url https://git.test/ --collection git     # Debian's git-doc
    raydex index --path fastapi/docs/en/docs --base-url https://fastapi.test/ --collection fastapi
    raydex index --path uv/docs --base-url https://uv.test/ --collection uv
    raydex index --path prometheus-docs/docs --base-url https://prometheus.test/ --collection prometheus
    raydex index --path vite/docs --base-url https://vite.test/ --collection vite
    # Debian's postgresql-doc-15, python3.11-doc and rust-doc (1.63), parts of each
    raydex index --path /usr/share/doc/postgresql-doc-15/html --base-url https://postgresql.test/ \
        --collection postgresql \
        --exclude '/(release|infoschema|spi|ecpg|catalog|view|pltcl|plperl|protocol|bookindex)'
    raydex index --path /usr/share/doc/python3.11/html/library --base-url https://python.test/library/ \
        --collection python --include '/library/[a-l]'
    raydex index --path /usr/share/doc/rust-doc/html/std --base-url https://rust.test/std/ --collection rust \
        --include '/std/(env|fs|io|net|path|process|string|sync|thread|time|vec)/' \
        --exclude 'Atomic(Bool|Ptr|I16|I32|I64|U[0-9]+)\.|/struct\.(Args|ArgsOs|Vars|VarsOs|SplitPaths|CommandArgs|
            CommandEnvs|Components|Ancestors|Incoming|IntoIncoming|Iter|IntoIter|TryIter|Bytes|Lines|Split|Drain|
            DrainFilter|Splice|ReadDir)\.'      # on one line

Flask, Caddy, Pydantic and Traefik, which only sections-more.jsonl asks about, are the Markdown folders (Flask:
reStructuredText) in their repositories, with https://flask.test/ and so on as base URL. `ray`, which blind.jsonl asks
about too, is the Ray documentation (benchmarks/common.py) at its own address.

Prints the shares of questions with the page and the section among the first hits, both fused and ranked by weights
fitted on the other sites. With --fit it also prints the weights fitted on all sites, for
pipelines/answering/retrieval/ranking/texts.yaml.
"""

import argparse
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from jobs.environment import open_store, read_configuration
from pipelines.answering.factory import make_retriever
from pipelines.answering.retrieval.ranking import texts as ranking
from pipelines.answering.retrieval.ranking.fusion import spread_pages
from pipelines.answering.retrieval.search import Search
from pipelines.evaluation.statistics import paired_test
from pipelines.records import Hit

QUESTIONS = Path(__file__).parent / "questions" / "sections.jsonl"
STRENGTH = 6.0  # penalty on squared weights, for features with variance 1
PLACES = [(kind, k) for kind in ("page", "section") for k in (1, 5, 9)]


@dataclass(frozen=True)
class Asked:
    """A question with its site's hits in the order of their fused scores."""

    question: str
    source: str
    hits: Sequence[Hit]
    features: ranking.Features

    def found(self, hits: Sequence[Hit]) -> list[float]:
        """Return for each of PLACES 1.0 if the page or section is among the first hits, else 0.0."""
        page = self.source.partition("#")[0]
        is_there = {"page": [hit.url == page for hit in hits], "section": [hit.source == self.source for hit in hits]}
        return [float(any(is_there[kind][:k])) for kind, k in PLACES]


Sites = Mapping[str, Sequence[Asked]]


def ask(questions: Path) -> Sites:
    """Return each collection's questions with the hits of the legs. Raises NoSuchCollection."""
    rows = [json.loads(line) for line in questions.read_text("utf-8").splitlines()]
    settings = read_configuration()
    settings = settings.model_copy(
        update={"retrieval": settings.retrieval.model_copy(update={"ranking": ranking.FUSED})}
    )
    sites: dict[str, list[Asked]] = {}
    with open_store() as store, contextlib.closing(make_retriever(settings, store)) as retriever:
        for row in rows:
            name, question = row["collection"], row["question"]
            if name not in sites:
                retriever.prepare(name)
            found = retriever.retrieve(Search((question,), collection=name, k=settings.retrieval.leg_depth))
            hits = sorted(found.hits, key=lambda hit: -hit.score)
            asked = Asked(question, row["source"], hits, ranking.features(found.question, hits))
            sites.setdefault(name, []).append(asked)
    return sites


def fit(asked: Sequence[Asked]) -> NDArray[np.float64]:
    """Return the weights that maximize the likelihood of the hits in the answering sections.

    This is a conditional logistic regression (McFadden: "Conditional logit analysis of qualitative choice behavior",
    1974) with a penalty on squared weights. Questions whose section is not among the hits are ignored.
    """
    data = []
    for one in asked:
        right = np.array([hit.source == one.source for hit in one.hits], np.float64)
        if right.any():
            data.append((one.features, right / right.sum()))
    scale = np.concatenate([table - table.mean(axis=0) for table, _ in data]).std(axis=0) + 1e-9

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = STRENGTH * float(weights @ weights), 2 * STRENGTH * weights
        for table, right in data:
            odds = (table / scale) @ weights
            likely = np.exp(odds - odds.max())
            likely /= likely.sum()
            total -= float(right @ np.log(likely + 1e-300))
            slope -= (right - likely) @ (table / scale)
        return total, slope

    found: NDArray[np.float64] = minimize(loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B").x
    return found / scale


def measure(sites: Sites) -> list[tuple[str, float, float, float, float]]:
    """Return for each of PLACES its name, the share on unseen sites, and the gain over fusion."""
    before, after = list[list[float]](), list[list[float]]()
    for name, asked in sites.items():
        weights = fit([one for other, rows in sites.items() if other != name for one in rows])
        for one in asked:
            before.append(one.found(spread_pages(one.hits)))
            ranked = ranking.rank(one.question, one.hits, [1.0] * len(one.hits), 9, weights=weights)
            after.append(one.found(ranked))
    rows = []
    for n, (kind, k) in enumerate(PLACES):
        test = paired_test([row[n] for row in after], [row[n] for row in before])
        rows.append((f"{kind} at {k}", float(np.mean([row[n] for row in after])), test.difference, test.low, test.high))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--fit", action="store_true", help="print the weights that all sites together give")
    args = parser.parse_args()
    sites = ask(args.questions)
    print(f"{sum(map(len, sites.values()))} questions to {len(sites)} sites, each ranked by weights of the others")
    for name, share, gain, low, high in measure(sites):
        print(f"{name:12} {share:.3f} {gain:+.3f} [{low:+.3f}, {high:+.3f}]")
    if args.fit:
        weights = fit([one for rows in sites.values() for one in rows])
        print(*(f"{name}: {weight:.2f}" for name, weight in zip(ranking.NAMES, weights, strict=True)), sep="\n")


if __name__ == "__main__":
    main()
