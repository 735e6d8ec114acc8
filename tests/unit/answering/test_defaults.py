"""Every default has one home: steps that are made by hand work as those that the settings describe."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit

from pipelines.answering import factory
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_agent, make_engine, make_llm, make_retriever, make_rewriter
from pipelines.answering.reranking import RERANKERS
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.settings import AgentSettings, AnswerSettings
from pipelines.answering.synthesis.modes import MODES, NO_TEXT
from pipelines.lexical import LexicalIndex
from pipelines.llm.client import LLM

DOCS = Path(__file__).parents[3] / "docs"
QUESTION = "How do I read rows of a dataset?"
AGENT = AgentSettings(name="a", model="m", base_url="http://127.0.0.1:1/v1")
UNTUNED = Fusion(rrf_k=60, reference_weight=1.0, pages_first=False)

GUIDE = [
    make_hit("https://d.test/guide#read", "Read rows of a dataset with take. It returns rows.", ordinal=0),
    make_hit("https://d.test/guide#rows", "Rows of a dataset are dictionaries. Read them in order.", ordinal=1),
    make_hit("https://d.test/tune#rows", "Tune reads rows of results.", ordinal=0),
]
REFERENCE = [
    make_hit(f"https://d.test/api#{name}", f"Read rows of a dataset: the dataset reads rows by {name}.", (title,))
    for name, title in (("write", "ray.data.Dataset.write_rows"), ("sort", "ray.data.Dataset.sort"))
]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(*GUIDE, *REFERENCE)


@pytest.fixture
def retrievers(store: MemoryStore, tmp_path: Path) -> Iterator[Any]:
    """Makes retrievers over the store; the keywords are the Retriever's."""
    made: list[Retriever] = []

    def make(**options: Any) -> Retriever:
        folder = tmp_path / str(len(made))
        made.append(Retriever(store, lambda _: WordEmbedder(), lambda index: LexicalIndex(folder), **options))
        return made[-1]

    yield make
    for retriever in made:
        retriever.close()


def retrieve(retriever: Retriever) -> list[tuple[str, float]]:
    retriever.prepare()
    return [(hit.source, hit.score) for hit in retriever.retrieve(Search((QUESTION,))).hits]


def test_a_retriever_by_hand_retrieves_like_the_service(retrievers: Any, store: MemoryStore, tmp_path: Path) -> None:
    configured = make_retriever(AnswerSettings(home=tmp_path), store)  # type: ignore[arg-type]
    by_hand, as_configured = retrieve(retrievers()), retrieve(retrievers(settings=configured.settings))
    configured.close()
    assert by_hand == as_configured
    untuned = retrieve(retrievers(settings=RetrievalSettings(fusion=UNTUNED)))
    assert [source for source, _ in by_hand] != [source for source, _ in untuned]


def test_an_engine_by_hand_answers_like_the_service(retrievers: Any) -> None:
    retriever = retrievers()
    by_hand, configured = QueryEngine(retriever), make_engine(AnswerSettings(), retriever)
    assert by_hand.settings == configured.settings
    found, expected = by_hand.query(QUESTION), configured.query(QUESTION)
    assert [hit.chunk_id for hit in found.hits] == [hit.chunk_id for hit in expected.hits]
    assert found.text == expected.text


def test_a_model_by_hand_is_called_like_an_agents() -> None:
    assert LLM("m", base_url=AGENT.base_url).settings == make_llm(AGENT).settings


# A replica takes a GPU only where one is reserved for it; a notebook takes the one that there is.
DIFFERENT = {"load_embedder.device"}
CALLED = {name: value for name, value in vars(factory).items() if callable(value)}
GIVEN = {"settings": AnswerSettings(), "agent": AGENT}


def calls_with_settings() -> Iterator[tuple[str, str, Any]]:
    """Every keyword that the factory fills from a setting alone: callable, keyword and the value by default."""
    for node in ast.walk(ast.parse(inspect.getsource(factory))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLED):
            continue
        for keyword in node.keywords:
            names = {one.id for one in ast.walk(keyword.value) if isinstance(one, ast.Name)}
            plain = isinstance(keyword.value, ast.Attribute | ast.BoolOp)  # settings.x, settings.x or None
            if keyword.arg and plain and names <= GIVEN.keys():
                expression = compile(ast.Expression(keyword.value), "factory", "eval")
                yield node.func.id, keyword.arg, eval(expression, {}, GIVEN)


def test_every_default_that_a_setting_shares_with_a_constructor_is_the_same() -> None:
    compared = set()
    for called, keyword, value in calls_with_settings():
        default = inspect.signature(CALLED[called]).parameters[keyword].default
        if default is not inspect.Parameter.empty and f"{called}.{keyword}" not in DIFFERENT:
            compared.add(f"{called}.{keyword}")
            assert value == default or (not value and not default), f"{called}({keyword}=…): {default!r}, not {value!r}"
    assert {"Fusion.rrf_k", "EngineSettings.k", "RetrievalSettings.leg_depth", "Rewriter.hyde"} <= compared


def test_further_steps_by_hand_are_made_like_the_service() -> None:
    with_model = AnswerSettings(agents=[AGENT])
    assert make_rewriter(with_model) is not None
    assert make_agent(with_model, AGENT)._at_once == factory.LLMAgent("a", make_llm(AGENT))._at_once


@pytest.mark.parametrize("page", ["answering.md", "api.md"])
def test_the_docs_name_every_mode(page: str) -> None:
    assert [mode for mode in (*MODES, NO_TEXT) if f"`{mode}`" not in (DOCS / page).read_text()] == []


def test_the_docs_name_every_reranker() -> None:
    text = (DOCS / "answering.md").read_text()
    assert [name for name in RERANKERS if f"`{name}`" not in text] == []
