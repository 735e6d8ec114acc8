"""Routers choose the agent that the operator intended for any text, with a readable reason."""

import pickle

import pytest
from pydantic import ValidationError

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.answering.routing.router import BadRouter, ClassifierRouter, FixedRouter
from pipelines.answering.routing.rules import Rule, RuleRouter
from pipelines.records import Route

EASY = ["what is ray", "what is a task", "what is an actor", "what is tune"]
HARD = ["why does my cluster crash", "why does my job hang", "why does my policy diverge", "why does it fail"]
ANY_TEXT = [
    "", " ", "😀" * 50, "C++ (", "a:b", '"x', "'; drop table x; --", "long " * 10_000, "\x00\ud800", "東京?", "[" * 99,
]  # fmt: skip


@pytest.fixture(scope="module")
def classifier() -> TextClassifier:
    return TextClassifier.fit(EASY + HARD, ["1"] * 4 + ["0"] * 4)


RULES = [
    Rule(agent="strong", pattern=r"\bstack ?trace\b"),
    Rule(agent="cheap", topics=("serve", "autoscaling group", "RLlib")),
    Rule(agent="other", pattern="serve"),
]


def test_fixed_router_sends_everything_to_one_agent():
    assert FixedRouter("cheap").route("anything") == Route("cheap", "It is the default agent")


@pytest.mark.parametrize(("question", "agent", "why"), [
    ("What does this STACKTRACE say?", "strong", r"the pattern «\bstack ?trace\b»"),
    ("How does ray.serve.start work?", "cheap", "the topic «serve»"),
    ("How do I start RayServe?", "cheap", "the topic «serve»"),
    ("Which autoscaling_group is mine?", "cheap", "the topic «autoscaling group»"),
    ("is rllib faster", "cheap", "the topic «RLlib»"),
    ("Can I observe it?", "other", "the pattern «serve»"),
    ("stack trace of serve", "strong", r"the pattern «\bstack ?trace\b»"),
])  # fmt: skip
def test_first_matching_rule_decides_and_is_named(question, agent, why):
    assert RuleRouter(RULES, "default").route(question) == Route(agent, f"The question matches {why}")


def test_default_agent_answers_without_a_matching_rule():
    route = RuleRouter(RULES[:2], "default").route("Can I observe it? A group autoscaling?")
    assert route == Route("default", "No rule matches, so the default agent answers")


@pytest.mark.parametrize(("values", "said"), [
    ({"pattern": "(open"}, r"'strong'.*'\(open'.*unterminated"),
    ({}, "strong"),
    ({"topics": ("serve", "?!")}, "strong"),
    ({"topics": "serve"}, "topics"),
])  # fmt: skip
def test_rule_that_is_invalid_or_matches_nothing_or_everything_is_refused(values, said):
    with pytest.raises(ValidationError, match=said):
        Rule(agent="strong", **values)


def test_topics_can_be_a_list_and_rules_cross_a_process_boundary():
    rule = pickle.loads(pickle.dumps(Rule(agent="cheap", pattern="x|y", topics=["serve"])))
    assert rule.topics == ("serve",)
    assert rule.match("only y") == "the pattern «x|y»"


def test_cheap_agent_is_chosen_from_the_threshold_up_with_the_numbers(classifier):
    easy, hard = "what is a node", "why does my node crash"
    probability = classifier.probability(easy, "1")
    assert 0.5 < probability < 1
    for question, threshold, agent, why in (
        (easy, 0.5, "cheap", "at least the threshold of 0.5"),
        (hard, 0.5, "strong", "below the threshold of 0.5"),
        (easy, probability, "cheap", "at least the threshold of "),
        (easy, probability + 1e-9, "strong", "below the threshold of "),
    ):
        route = ClassifierRouter(classifier, threshold, easy="cheap", hard="strong").route(question)
        says = f"The probability that cheap suffices is {classifier.probability(question, '1'):.3f}, {why}"
        assert route.agent == agent and route.why.startswith(says)


@pytest.mark.parametrize(("threshold", "agent"), [(0, "cheap"), (1, "strong")])
def test_extreme_thresholds_always_choose_one_agent(classifier, threshold, agent):
    router = ClassifierRouter(classifier, threshold, easy="cheap", hard="strong")
    assert {router.route(question).agent for question in EASY + HARD} == {agent}


@pytest.mark.parametrize(
    ("threshold", "labels", "said"),
    [(-0.1, "01", "threshold"), (1.1, "01", "threshold"), (float("nan"), "01", "threshold"), (0.5, "yn", "no '1'")],
)
def test_invalid_threshold_or_unknown_label_is_refused(threshold, labels, said):
    learned = TextClassifier.fit(EASY + HARD, [labels[place >= len(EASY)] for place in range(len(EASY + HARD))])
    with pytest.raises(BadRouter, match=said):
        ClassifierRouter(learned, threshold, easy="cheap", hard="strong")


@pytest.mark.parametrize("question", ANY_TEXT, ids=range(len(ANY_TEXT)))
def test_no_text_breaks_a_router(classifier, question):
    for router in (
        FixedRouter("cheap"),
        RuleRouter(RULES, "cheap"),
        ClassifierRouter(classifier, 0.5, easy="cheap", hard="strong"),
    ):
        assert router.route(question).agent in ("cheap", "strong")
