r"""Fits the weights for ordering hits, and measures them on sites that were not used for fitting.

    python -m benchmarks.ranking [--questions FILE …] [--fit] [--only FEATURE …]

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

The sites of readers.jsonl and readers-tuning.jsonl (164 more questions about the open sites, written for fitting) are
those of benchmarks/readers.py. Closed sites are left out.

Prints the shares of questions with the page and the section among the first hits, ranked by weights fitted on the other
sites, and the gain over fusion. With --only, only these FEATUREs are fitted, the others keep their weights, and the
gain is over the weights as they are. With --fit it also prints the weights fitted on all sites, for
pipelines/answering/retrieval/ranking/texts.yaml.
"""

import argparse
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.readers import is_page, is_right
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
    """A question of a list, `row`, with its site's hits in the order of their fused scores."""

    row: Mapping[str, Any]
    question: str
    hits: Sequence[Hit]
    features: ranking.Features

    def has_section(self, hit: Hit) -> bool:
        """Return whether a hit is of a section that answers."""
        if "answers" in self.row:
            return is_right(self.row["answers"], hit.url, hit.headings)
        return hit.source in _sources(self.row)

    def has_page(self, hit: Hit) -> bool:
        """Return whether a hit is of a page that answers."""
        if "answers" in self.row:
            return any(is_page(answer["path"], hit.url) for answer in self.row["answers"])
        return hit.url in {source.partition("#")[0] for source in _sources(self.row)}

    def found(self, hits: Sequence[Hit]) -> list[float]:
        """Return for each of PLACES 1.0 if the page or section is among the first hits, else 0.0."""
        is_there = {"page": list(map(self.has_page, hits)), "section": list(map(self.has_section, hits))}
        return [float(any(is_there[kind][:k])) for kind, k in PLACES]


def _sources(row: Mapping[str, Any]) -> Sequence[str]:
    return row["sources"] if "sources" in row else [row["source"]]


Sites = Mapping[str, Sequence[Asked]]


def ask(questions: Sequence[Path]) -> Sites:
    """Return each collection's questions with the hits of the legs. Raises NoSuchCollection."""
    rows = [json.loads(line) for path in questions for line in path.read_text("utf-8").splitlines()]
    rows = [row for row in rows if not row.get("closed") and row.get("answers") != []]
    settings = read_configuration()
    settings = settings.model_copy(
        update={"retrieval": settings.retrieval.model_copy(update={"ranking": ranking.FUSED})}
    )
    sites: dict[str, list[Asked]] = {}
    with open_store() as store, contextlib.closing(make_retriever(settings, store)) as retriever:
        for row in rows:
            name, question = row.get("collection") or row["site"], row["question"]
            if name not in sites:
                retriever.prepare(name)
            found = retriever.retrieve(Search((question,), collection=name, k=settings.retrieval.leg_depth))
            hits = sorted(found.hits, key=lambda hit: -hit.score)
            asked = Asked(row, question, hits, ranking.features(found.question, hits))
            sites.setdefault(name, []).append(asked)
    return sites


def fit(asked: Sequence[Asked], only: Sequence[str] = ()) -> NDArray[np.float64]:
    """Return the weights that maximize the likelihood that the first hit is in a section that answers.

    This is a conditional logistic regression (McFadden: "Conditional logit analysis of qualitative choice behavior",
    1974) with a penalty on squared weights. Questions whose section is not among the hits are ignored. With `only`, the
    weights of these features are fitted and the others stay as they are.
    """
    free = np.array([not only or name in only for name in ranking.NAMES])
    kept = np.where(free, 0.0, ranking.WEIGHTS)
    data = []
    for one in asked:
        right = np.array(list(map(one.has_section, one.hits)))
        if right.any():
            data.append((one.features[:, free], right, one.features @ kept))
    scale = np.concatenate([table - table.mean(axis=0) for table, _, _ in data]).std(axis=0) + 1e-9

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = STRENGTH * float(weights @ weights), 2 * STRENGTH * weights
        for table, right, base in data:
            odds = (table / scale) @ weights + base
            likely = np.exp(odds - odds.max())
            likely /= likely.sum()
            likely_right = likely * right
            total -= float(np.log(likely_right.sum() + 1e-300))
            slope -= (likely_right / (likely_right.sum() + 1e-300) - likely) @ (table / scale)
        return total, slope

    weights = kept.copy()
    weights[free] = minimize(loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B").x / scale
    return weights


def measure(sites: Sites, only: Sequence[str] = ()) -> list[tuple[str, float, float, float, float]]:
    """Return for each of PLACES its name, the share on unseen sites, and the gain.

    The gain is over fusion, or with `only` over the weights as they are.
    """
    before, after = list[list[float]](), list[list[float]]()
    for name, asked in sites.items():
        weights = fit([one for other, rows in sites.items() if other != name for one in rows], only)
        for one in asked:
            before.append(one.found(_ranked(one, ranking.WEIGHTS) if only else spread_pages(one.hits)))
            after.append(one.found(_ranked(one, weights)))
    rows = []
    for n, (kind, k) in enumerate(PLACES):
        test = paired_test([row[n] for row in after], [row[n] for row in before])
        rows.append((f"{kind} at {k}", float(np.mean([row[n] for row in after])), test.difference, test.low, test.high))
    return rows


def _ranked(asked: Asked, weights: NDArray[np.float64]) -> list[Hit]:
    return [hit for hit, _ in ranking.rank(asked.question, asked.hits, [1.0] * len(asked.hits), 9, weights=weights)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, nargs="+", default=[QUESTIONS], metavar="FILE")
    parser.add_argument("--fit", action="store_true", help="print the weights that all sites together give")
    parser.add_argument("--only", nargs="+", default=[], metavar="FEATURE", choices=ranking.NAMES, help="fit these")
    args = parser.parse_args()
    sites = ask(args.questions)
    print(f"{sum(map(len, sites.values()))} questions to {len(sites)} sites, each ranked by weights of the others")
    for name, share, gain, low, high in measure(sites, args.only):
        print(f"{name:12} {share:.3f} {gain:+.3f} [{low:+.3f}, {high:+.3f}]")
    if args.fit:
        weights = fit([one for rows in sites.values() for one in rows], args.only)
        print(*(f"{name}: {weight:.2f}" for name, weight in zip(ranking.NAMES, weights, strict=True)), sep="\n")


if __name__ == "__main__":
    main()
