"""Every default is declared once: steps built by hand work like those built from settings."""

import ast
import inspect
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from kit.answering import MemoryStore, make_hit

from pipelines.answering import factory
from pipelines.answering.engine import QueryEngine
from pipelines.answering.factory import make_engine, make_llm, make_retriever
from pipelines.answering.reranking import RERANKERS
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.settings import AgentSettings, AnswerSettings
from pipelines.answering.synthesis.modes import MODES, NO_TEXT
from pipelines.llm.client import LLM, LLMSettings

DOCS = Path(__file__).parents[3] / "docs"
QUESTION = "How do I read rows of a dataset?"
AGENT = AgentSettings(name="a", model="m", base_url="http://127.0.0.1:1/v1")
HITS = [
    make_hit("https://d.test/guide#read", "Read rows of a dataset with take. It returns rows."),
    make_hit("https://d.test/tune#rows", "Tune reads rows of results."),
]


def test_manually_built_retriever_matches_the_service(retriever: Retriever, store: MemoryStore, tmp_path: Path) -> None:
    with closing(make_retriever(AnswerSettings(home=tmp_path), store)) as configured:  # type: ignore[arg-type]
        assert retriever.settings == configured.settings


def test_manually_built_engine_answers_like_the_service(retriever: Retriever) -> None:
    by_hand, configured = QueryEngine(retriever), make_engine(AnswerSettings(), retriever)
    assert by_hand.settings == configured.settings
    found, expected = by_hand.query(QUESTION), configured.query(QUESTION)
    assert (found.hits, found.text) == (expected.hits, expected.text)


def test_manually_built_model_has_the_settings_of_an_agent() -> None:
    by_hand, configured = LLM("m", base_url=AGENT.base_url).settings, make_llm(AGENT).settings
    assert all(getattr(configured, name) == getattr(by_hand, name) for name in LLMSettings.model_fields)


# A replica uses a GPU only if one is reserved for it; a notebook uses the one in the machine.
DIFFERENT = {"load_embedder.device"}
CALLED = {name: value for name, value in vars(factory).items() if callable(value)}
GIVEN = {"settings": AnswerSettings(), "agent": AGENT}


def calls_with_settings() -> Iterator[tuple[str, str, Any]]:
    """Return every keyword that the factory fills from one setting: callable, keyword and default value."""
    for node in ast.walk(ast.parse(inspect.getsource(factory))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLED):
            continue
        for keyword in node.keywords:
            names = {one.id for one in ast.walk(keyword.value) if isinstance(one, ast.Name)}
            plain = isinstance(keyword.value, ast.Attribute | ast.BoolOp)  # settings.x, settings.x or None
            if keyword.arg and plain and names <= GIVEN.keys():
                expression = compile(ast.Expression(keyword.value), "factory", "eval")
                yield node.func.id, keyword.arg, eval(expression, {}, GIVEN)


def test_settings_and_constructors_share_their_defaults() -> None:
    compared = set()
    for called, keyword, value in calls_with_settings():
        default = inspect.signature(CALLED[called]).parameters[keyword].default
        if default is not inspect.Parameter.empty and f"{called}.{keyword}" not in DIFFERENT:
            compared.add(f"{called}.{keyword}")
            assert value == default or (not value and not default), f"{called}({keyword}=…): {default!r}, not {value!r}"
    assert {"Fusion.rrf_k", "EngineSettings.k", "RetrievalSettings.leg_depth", "Rewriter.hyde"} <= compared


def test_docs_name_every_mode_and_reranker() -> None:
    text = (DOCS / "answering.md").read_text()
    assert [name for name in (*MODES, NO_TEXT, *RERANKERS) if f"`{name}`" not in text] == []
