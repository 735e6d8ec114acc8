"""The flags of `raydex train`: each plan declares its own flags and defaults."""

from typing import Any

import pytest

from jobs import train
from jobs.flags import BadFlags, fill, read_words
from pipelines.training import KINDS
from pipelines.training.cross_encoder import RerankerPlan
from pipelines.training.embedder import EmbedderPlan

REQUIRED = {"tags": ["--prefix", "https://docs.example/"]}


def plan_of(kind: str, *words: str) -> Any:
    argv = [kind, "--dataset", "qa.jsonl", "--output", "model", *REQUIRED.get(kind, []), *words]
    return fill(KINDS[kind].plan, read_words(train.app, argv)[1].arguments.get("plan"))


@pytest.mark.parametrize("kind", KINDS)
def test_plan_without_flags_has_its_own_defaults(kind: str) -> None:
    given = {"prefix": "https://docs.example/"} if kind == "tags" else {}
    assert plan_of(kind) == KINDS[kind].plan(**given)


def test_flags_reach_the_plan_of_their_kind() -> None:
    words = ("--layers", "embeddings", "--epochs", "0.5", "--max-tokens", "128", "--precision", "bf16")
    plan = plan_of("embedder", *words)
    assert (plan.layers, plan.epochs, plan.max_tokens, plan.precision) == ("embeddings", 0.5, 128, "bf16")
    plan = plan_of("reranker", "--feedback", "--held-out", "0", "--seed", "7")
    assert (plan.feedback, plan.held_out, plan.seed) == (True, 0, 7)


def test_token_embeddings_alone_get_a_higher_rate_unless_one_is_given() -> None:
    assert EmbedderPlan().learning_rate == 2e-5 and EmbedderPlan(layers="embeddings").learning_rate == 1e-4
    assert EmbedderPlan(layers="embeddings", learning_rate=3e-5).learning_rate == 3e-5
    assert RerankerPlan().learning_rate == 5e-5
    assert plan_of("embedder", "--low-rank", "8").learning_rate == 1e-3
    assert plan_of("embedder", "--low-rank", "0").learning_rate == 2e-5


def test_every_wrong_flag_is_named_with_its_value() -> None:
    with pytest.raises(BadFlags) as caught:
        plan_of("embedder", "--epochs", "x", "--batch-size", "1")
    assert "--epochs is 'x': " in str(caught.value) and "--batch-size is '1': " in str(caught.value)
    with pytest.raises(BadFlags, match="--low-rank trains the layers of the encoder, --layers embeddings the tokens"):
        plan_of("embedder", "--low-rank", "8", "--layers", "embeddings")
    with pytest.raises(BadFlags, match=r"--low-rank is '-1'.*--new-words is 'many'"):
        plan_of("embedder", "--low-rank", "-1", "--new-words", "many")
    with pytest.raises(BadFlags, match="only a transformer is trained with --epochs and --precision: give --base too"):
        plan_of("tags", "--epochs", "2", "--precision", "bf16")
    with pytest.raises(BadFlags, match="k is 40 and depth 30"):
        plan_of("reranker", "--k", "40")
