"""Settings of answers: bad values are named before anything starts, good ones become the configured steps."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.environment import read_configuration
from pipelines.answering.factory import make_agent, make_reranker, make_rewriter, make_router
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.answering.routing.router import ClassifierRouter
from pipelines.answering.settings import AnswerSettings, all_agents, describe_errors, without_models
from pipelines.answering.synthesis.prompts import TemplateError

BIG, SMALL = {"name": "big", "model": "m"}, {"name": "small", "model": "s", "system_prompt": "Be brief."}


def make_settings(**settings: Any) -> AnswerSettings:
    return AnswerSettings.model_validate(settings)


@pytest.mark.parametrize(("settings", "said"), [
    ({"agents": [BIG, BIG]}, "share a name"),
    ({"agents": [BIG], "router_default": "huge"}, r"router.default names the agent 'huge'; there are: big"),
    ({"agents": [BIG], "router_kind": "rules", "router_rules": [{"agent": "x", "topics": ["a"]}]},
     "router.rules names"),
    ({"agents": [{"name": "extractive", "model": "m"}]}, "built-in"),
    ({"agents": [{**BIG, "temprature": 1}]}, "temprature"),
    ({"reranker_kind": "cross-encoder"}, "needs reranker.model"),
    ({"reranker_kind": "endpoint"}, "needs reranker.url"),
    ({"reranker_kind": "llm"}, "'llm' is not one of the choices: none, cross-encoder"),
    ({"router_kind": "classifier"}, "router.model and router.easy and router.hard"),
    ({"rewriting_hyde": True}, "rewriting.hyde needs a language model"),
    ({"rewriting_num_queries": 3}, "rewriting.num_queries needs a language model"),
    ({"fusion_kind": "mean"}, "'mean' is not one of the choices: rrf, relative_score, insert"),
    ({"synthesis_mode": "poem"}, "compact"),
    ({"retrieval_k": 0}, "greater than or equal to 1"),
])  # fmt: skip
def test_unusable_setting_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        make_settings(**settings)


def test_error_names_the_setting_and_shows_no_key() -> None:
    with pytest.raises(ValidationError) as caught:
        make_settings(retrieval_k=0, agents=[{"name": "a", "api_key": "secret-3"}])
    said = describe_errors(caught.value)
    assert said == "setting agents.0.model is missing; setting retrieval.k is 0: it must be at least 1"


def test_default_settings_have_no_model_and_quote() -> None:
    plain = make_settings()
    assert all_agents(plain) == [] and make_rewriter(plain) is None and make_reranker(plain) is None
    assert make_router(plain, []).route("anything").agent == "extractive"


def test_short_form_defines_one_agent_and_shows_no_key() -> None:
    short = make_settings(llm_model="m", llm_url="http://x/v1", llm_key="secret-1", llm_context_seconds=3)
    (agent,) = all_agents(short)
    assert (agent.name, agent.model, agent.base_url, agent.api_key) == ("llm", "m", "http://x/v1", "secret-1")
    assert agent.context_seconds == 3 and make_rewriter(short) is not None
    assert "secret" not in repr((short, make_settings(agents=[{**BIG, "api_key": "secret-2"}])))


def test_rules_select_agents() -> None:
    both = make_settings(
        agents=[BIG, SMALL], router={"kind": "rules", "rules": [{"agent": "small", "pattern": "^quick"}]}
    )
    agents = [make_agent(both, agent) for agent in both.agents]
    router = make_router(both, agents)
    assert router.route("quick one").agent == "small" and router.route("slow one").agent == "big"


def test_unusable_prompt_is_named() -> None:
    made = make_settings(agents=[BIG], prompts_templates={"qa": "No context for {question}"})
    with pytest.raises(TemplateError, match="qa"):
        make_agent(made, made.agents[0])


def test_trained_router_uses_its_judged_threshold_unless_overridden(tmp_path: Path) -> None:
    texts = [f"easy thing {n}" for n in range(10)] + [f"hard question {n}" for n in range(10)]
    learned = TextClassifier.fit(texts, ["1"] * 10 + ["0"] * 10)
    learned.save(tmp_path / "router", {"settings": {"threshold": 0.8}})

    def router(**settings: Any) -> ClassifierRouter:
        ends = {"router_easy": "small", "router_hard": "big", "router_model": tmp_path / "router"}
        made = make_router(make_settings(agents=[BIG, SMALL], router_kind="classifier", **ends, **settings), [])
        assert isinstance(made, ClassifierRouter)
        return made

    assert router().threshold == 0.8 and router(router_threshold=0.3).threshold == 0.3
    learned.save(tmp_path / "router", {})  # folders of earlier versions had none
    for question, agent in (("easy thing 3", "small"), ("hard question 3", "big")):
        assert router().route(question).agent == agent


def test_settings_for_all_agents_apply_to_agents_from_a_variable_too(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"name": "own", "model": "m", "form": "written", "context_seconds": 1}
    monkeypatch.setenv("RAYDEX_AGENTS", json.dumps([{"name": "plain", "model": "m"}, own]))
    monkeypatch.setenv("RAYDEX_LLM_FORM", "summary")
    monkeypatch.setenv("RAYDEX_LLM_CONTEXT_SECONDS", "9")
    found = {agent.name: (agent.form, agent.context_seconds) for agent in all_agents(read_configuration())}
    assert found == {"plain": ("summary", 9), "own": ("written", 1)}


def test_answers_without_models_are_extractive_in_any_configuration():
    reranker = {"kind": "endpoint", "url": "http://rerank"}
    rewriting = {"num_queries": 2, "hyde": True, "agent": "big"}
    asking = make_settings(agents=[BIG], router_default="big", rewriting=rewriting, reranker=reranker)
    free = without_models(asking)
    assert all_agents(free) == [] and make_router(free, []).route("why?").agent == "extractive"
    assert AnswerSettings.model_validate(free.model_dump(exclude={"home"})).reranker.kind == "endpoint"
