"""Prices of models, and the cost of questions at these prices.

Knows prices and tokens. Pure arithmetic that calls no model.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents
from pipelines.records import Usage
from pipelines.text.mistakes import describe_mistakes
from pipelines.text.parsing import NotParsed, parse_yaml

MILLION = 1_000_000
PRICES = Path(__file__).with_name("prices.yaml")
GIVE = "give any of prompt, completion, embedding, in US dollars per million tokens"

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class BadPrices(ValueError):
    """A price table can't be used; the message names the file, the model and the problem."""


class Price(BaseModel):
    """US dollars per million tokens of prompts, completions and embedded text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Dollars = 0.0
    completion: Dollars = 0.0
    embedding: Dollars = 0.0
    source: str = ""


def load_prices(path: Path | str | None = None) -> dict[str, Price]:
    """Return the price of each model by its name in lower case; prices in `path` override the built-in ones.

    A file is YAML or JSON: {models: {NAME: {prompt, completion, embedding}}}; `models:` may be omitted. Raises
    BadPrices.
    """
    prices = _read(PRICES)
    return prices | _read(Path(path)) if path else prices


def price_or_free(model: str, prices: Mapping[str, Price]) -> Price:
    """Return the price of a model, with or without a provider prefix (`meta-llama/…`, `openai:…`).

    Unknown models are free.
    """
    name = model.lower()
    known = (name, name.rpartition("/")[2], name.removeprefix("openai:"))
    return next((prices[one] for one in known if one in prices), Price())


def add_prices(configuration: AnswerSettings, prices: Mapping[str, Price]) -> AnswerSettings:
    """Return `configuration` with known prices for agents that have none, so that each call records its cost.

    Without such an agent it is unchanged, so that it has the fingerprint of an evaluation outside an experiment.
    """
    given = all_agents(configuration)
    agents = [_add_price(agent, prices) for agent in given]
    if agents == given:
        return configuration
    none = configuration.llm.model_copy(update={"model": "", "url": "", "key": ""})  # it is one of the agents now
    return configuration.model_copy(update={"agents": agents, "llm": none})


def _add_price(agent: AgentSettings, prices: Mapping[str, Price]) -> AgentSettings:
    if agent.prompt_price or agent.completion_price:
        return agent
    price = price_or_free(agent.model, prices)
    return agent.model_copy(update={"prompt_price": price.prompt, "completion_price": price.completion})


def _read(path: Path) -> dict[str, Price]:
    try:
        loaded = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, NotParsed) as error:
        raise BadPrices(f"{path}: can't be read: {' '.join(str(error).split())[:300]}") from error
    models = loaded.get("models", loaded) if isinstance(loaded, dict) else None
    if not isinstance(models, dict):
        raise BadPrices(f"{path}: must be a table of models, NAME: {{prompt: 2.5, completion: 10}}")
    return {str(name).lower(): _price(path, str(name), row) for name, row in models.items()}


def _price(path: Path, name: str, row: Any) -> Price:
    try:
        if price := row and Price.model_validate(row):
            return price
    except ValidationError as error:
        raise BadPrices(f"{path}: {name}: {describe_mistakes(error, Price)}; {GIVE}") from error
    raise BadPrices(f"{path}: {name}: {GIVE}")


def bill(usages: Sequence[Usage], embedding: float = 0.0) -> dict[str, float]:
    """Return the cost of questions with these usages in US dollars, with the mean tokens and calls per question.

    `embedding` is the total cost of their embeddings in US dollars.
    """
    n, used = len(usages) or 1, sum(usages, Usage())
    total = used.cost + embedding
    return {
        "per_question": total / n,
        "per_1000": 1_000 * (total / n),
        "prompt_tokens": used.prompt_tokens / n,
        "completion_tokens": used.completion_tokens / n,
        "calls": used.calls / n,
    }
