"""An answer costs the sum of its tokens' prices."""

import pytest

from pipelines.answering.settings import AnswerSettings, all_agents
from pipelines.evaluation.experiments.prices import BadPrices, Price, add_prices, bill, load_prices, price_or_free
from pipelines.records import Usage


def test_model_is_found_by_provider_name_and_every_price_has_a_source():
    prices = load_prices()
    assert price_or_free("meta-llama/Llama-2-70b-chat-hf", prices) == prices["llama-2-70b-chat-hf"]
    assert price_or_free("openai:text-embedding-3-small", prices).embedding == 0.02
    assert price_or_free("GPT-4", prices).completion == 60
    assert all(price.source in ("study", "list") for price in prices.values())
    assert price_or_free("gpt-4-turbo", prices) == Price()


def test_custom_price_file_wins_model_by_model(tmp_path):
    (path := tmp_path / "prices.yaml").write_text("models: {GPT-4: {prompt: 1, completion: 2}, mine: {prompt: 0}}")
    prices = load_prices(path)
    assert prices["gpt-4"] == Price(prompt=1, completion=2)
    assert prices["mine"] == Price() and prices["gpt-4o"].prompt == 2.5
    (path := tmp_path / "prices.json").write_text('{"mine": {"embedding": 3}}')
    assert load_prices(path)["mine"].embedding == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- gpt-4", "must be a table"),
        ("gpt-4: 30", "gpt-4: 30: it must be a table"),
        ("gpt-4: {}", "gpt-4: give any of"),
        ("gpt-4: {input: 30}", "input is unknown: there are: prompt"),
        ("gpt-4: {prompt: -1}", "prompt is -1"),
        ("gpt-4: {prompt: .nan}", "prompt is nan"),
        ("gpt-4: {prompt: a lot}", "prompt is 'a lot'"),
        ("a: [", "can't be read"),
    ],
)
def test_unusable_price_file_is_an_error_with_the_reason(tmp_path, text, words):
    (path := tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(BadPrices, match=r"prices\.yaml") as error:
        load_prices(path)
    assert words in str(error.value)
    with pytest.raises(BadPrices, match="gone"):
        load_prices(tmp_path / "gone.yaml")


def test_bill_covers_one_question_and_a_thousand():
    usages = [Usage(1_000, 100, 1, 0.5), Usage(3_000, 300, 3, 1.5)]
    each = {"prompt_tokens": 2_000, "completion_tokens": 200, "calls": 2}
    assert bill(usages) == {"per_question": 1.0, "per_1000": 1_000.0, **each}
    assert bill(usages, embedding=0.5)["per_question"] == pytest.approx(1.25)
    assert bill([])["per_1000"] == 0


def test_agents_without_a_price_get_the_known_price_of_their_model():
    own = {"name": "own", "model": "gpt-4", "prompt_price": 1.0}
    local = {"name": "local", "model": "nobody/knows"}
    single = {"llm_model": "openai/GPT-4", "llm_url": "http://127.0.0.1:9/v1", "llm_key": "k"}
    agents = all_agents(add_prices(AnswerSettings.model_validate({**single, "agents": [own, local]}), load_prices()))
    assert [(a.name, a.prompt_price, a.completion_price) for a in agents] == [
        ("llm", 30, 60), ("own", 1, 0), ("local", 0, 0),
    ]  # fmt: skip
    assert (agents[0].model, agents[0].api_key) == ("openai/GPT-4", "k")


@pytest.mark.parametrize("off", [False, True])
def test_configuration_of_free_models_is_unchanged(off):
    settings = AnswerSettings.model_validate({"llm_model": "nobody/knows", "agents": [{"name": "a", "model": "free"}]})
    settings = settings.model_copy(update={"llm": settings.llm.model_copy(update={"off": off})})
    assert add_prices(settings, load_prices()) == settings
