"""Evaluation and routing as in Anyscale's guide: cold-start questions, retrieval score, quality score, router, cost.

    .venv/bin/python examples/05_evaluate_and_route.py

Without a model, the questions are section headings and the answers are quotations, which cost nothing. With
OPENAI_BASE_URL (and OPENAI_MODEL, OPENAI_API_KEY) a model writes questions, reference answers and answers, and judges.
"""

import os
import sys
import tempfile
from pathlib import Path

from pipelines import evaluation
from pipelines.answering import AnswerSettings, CannotLearn, ClassifierRouter, LLMAgent, QueryEngine, Retriever
from pipelines.embedded import run_scratch_postgres
from pipelines.indexing import Collection, Folder, ReindexOptions, reindex
from pipelines.llm import LLM, CachedModel, LLMSettings
from pipelines.store import Store
from pipelines.training import fit_router

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = "/(answering|crawling|freshness|indexing)"  # takes seconds; all pages take a minute
PRICES = LLMSettings(prompt_price=0.15, completion_price=0.6)  # US dollars per million tokens
QUESTIONS = ("How do I leave out pages?", "Why does a follow-up question find other pages than the first one?")
EASY, HARD = "extractive", "model"


def choose_model() -> LLM | None:
    """Return the language model named in the environment, None if there is none."""
    url, name = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    return LLM(name, base_url=url, api_key=os.environ.get("OPENAI_API_KEY", ""), settings=PRICES) if url else None


def evaluate_and_route(store: Store, home: Path, llm: LLM | None) -> None:
    """Make questions, score the answers, learn which questions need the model, and route two questions accordingly."""
    writer = CachedModel(llm, home / "replies") if llm else None
    options = evaluation.QuestionOptions(limit=0 if llm is None else 15, find_in=0)
    examples = evaluation.make_questions(store, AnswerSettings(home=home), "docs", writer, options).examples
    if writer:
        examples = evaluation.answer_questions(store, "docs", writer, examples).examples
    print(f"{len(examples)} questions, the first: {examples[0].question}")

    retriever = Retriever.over(store, home, collection="docs")
    retriever.prepare()
    agents = [LLMAgent(HARD, llm)] if llm else []
    plan = evaluation.EvaluationPlan("docs", ks=(1, 5), answers=llm is not None)
    evaluator = evaluation.Evaluator(
        QueryEngine(retriever, agents=agents), plan, judge=evaluation.Judge(llm) if llm else None
    )
    rows = {example.id: row for example, row in zip(examples, evaluator.ask(examples), strict=True)}
    scores = evaluation.summarise(examples, rows, plan)
    print(f"retrieval score {scores['retrieval_score']}, section score {scores['section_score']}")
    print(f"quality score, 1 to 5: {scores.get('quality', 'needs a model')}")

    # If the right section is the first hit, a quotation is enough; the other questions need the model.
    found = evaluation.per_question(examples, rows, plan)
    labelled = [evaluation.LabelledQuestion(row["question"], row["scores"]["section_score@1"] == 1) for row in found]
    try:
        router = ClassifierRouter(fit_router(labelled), easy=EASY, hard=HARD if llm else EASY)
    except CannotLearn as error:  # with few questions, all may be found, or none
        sys.exit(f"no router: {error}")
    engine = QueryEngine(retriever, agents=agents, router=router)
    answers = [engine.query(question) for question in QUESTIONS]
    for answer in answers:
        print(f"{answer.question} -> {answer.agent}. {answer.route.why if answer.route else ''}")
    print(f"US dollars for 1,000 questions: {evaluation.bill([answer.usage for answer in answers])['per_1000']:.4f}")
    retriever.close()


if __name__ == "__main__":
    place = Path(tempfile.mkdtemp(prefix="raydex-"))
    with run_scratch_postgres(place) as url, Store(url) as database:
        database.migrate()
        folder = Folder(path=str(DOCS), base_url="https://docs.example.com/", include=[PAGES])
        reindex(database, Collection(name="docs", folders=[folder]), ReindexOptions(no_ray=True))
        evaluate_and_route(database, place, choose_model())
