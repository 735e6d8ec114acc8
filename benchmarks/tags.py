"""Measures the tag reranker on the Ray documentation with our retrieval, at the Ray assistant study's thresholds.

    python -m benchmarks.tags [--quick] [--base MODEL] [--held-out 400] [--home DIR] [--json FILE] [--write PAGE]

A classifier learns the part of the documentation from the questions in `embedding_qa.json` and people's corrections
(`reranker-corrections.csv`), except for a fifth whose pages and wordings it does not see. On questions of that fifth,
the hits of the predicted part are put first at each threshold. Uses the benchmarks' collection, which is indexed the
first time. `--base` uses a classification head on a transformer instead of TF-IDF. Takes some minutes.
"""

from functools import partial

from benchmarks import common, tables
from pipelines.answering.reranking.tag import TagReranker
from pipelines.answering.settings import AnswerSettings
from pipelines.store import Store
from pipelines.text.tables import with_interval
from pipelines.training.ranking import judge_ranks
from pipelines.training.run import TrainingOrder, Workplace
from pipelines.training.tags import THRESHOLDS, TagKind, TagPlan, fitter, rows_without

KS = (1, 5, 9)


def main() -> None:
    """Measure and report."""
    parser = common.arguments(__doc__)
    parser.add_argument("--base", default="", help="a transformer that gets a classifying head")
    parser.add_argument("--held-out", type=int, default=400, help="questions to measure by")
    args = common.parse(parser, "tags")
    dataset, people = (common.data(name) for name in ("embedding_qa.json", "reranker-corrections.csv"))
    plan = TagPlan(prefix=common.BASE_URL, base=args.base, held_out=40 if args.quick else args.held_out)
    with common.indexed_ray_docs(args.home) as url:
        order = TrainingOrder(
            dataset,
            "raydocs",
            corrections=people,
            open_store=partial(Store, url),
            settings=AnswerSettings(home=args.home),
            progress=print,
        )
        data = TagKind().load(order, plan)
    classifier = fitter(data, Workplace(args.home / "tags", print))(rows_without(data.rows, data.fold))
    classifier.metadata = {"prefix": plan.prefix}
    before, rows, figures = data.hits.ranks(), [], {}
    sure = [classifier.predict(example.question) for example in data.hits.examples]
    for threshold in THRESHOLDS:
        verdict = judge_ranks(before, data.hits.ranks(TagReranker(classifier, threshold)), 5, KS)
        taken = sum(probability >= threshold for _, probability in sure) / len(sure)
        scores = [f"{verdict.after.retrieval_score[k].value:.3f}" for k in KS]
        gain = with_interval((verdict.gain.difference, verdict.gain.low, verdict.gain.high), "+.3f")
        rows.append([f"{threshold:g}", f"{taken:.2f}", *scores, f"{verdict.after.mrr.value:.3f}", gain])
        figures[str(threshold)] = rows[-1]
    plain = judge_ranks(before, before, 5, KS).before
    scores = [f"{plain.retrieval_score[k].value:.3f}" for k in KS]
    head = ["threshold", "sure of", *(f"@{k}" for k in KS), "MRR", "gain@5"]
    table = tables.as_table(head, [["without", "", *scores, f"{plain.mrr.value:.3f}", ""], *rows])
    asked = f"{len(before):,} questions of held-out pages, {len(data.hits.hits[0])} hits reordered."
    common.report(args, "tags", f"{table}\n\n{asked}", figures, packages=["scikit-learn"])


if __name__ == "__main__":
    main()
