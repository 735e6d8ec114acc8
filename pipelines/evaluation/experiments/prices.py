"""Prices of models, and what questions cost at them.

Knows prices and tokens; pure arithmetic, no model is asked.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents
from pipelines.records import Usage

MILLION = 1_000_000
PRICES = Path(__file__).with_name("prices.yaml")


class BadPrices(ValueError):
    """A price table can't be used; the message names the file, the model and the problem."""


class UnknownPrice(LookupError):
    """A model has no known price."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of the prompt, of the completion, and of text that is embedded."""

    prompt: float = 0.0
    completion: float = 0.0
    embedding: float = 0.0
    source: str = ""

    def cost(self, prompt_tokens: int = 0, completion_tokens: int = 0, embedded_tokens: int = 0) -> float:
        """Return the US dollars of these tokens."""
        tokens = prompt_tokens * self.prompt + completion_tokens * self.completion + embedded_tokens * self.embedding
        return tokens / MILLION


def load_prices(path: Path | str | None = None) -> dict[str, Price]:
    """Return the price of each model by its name in lower case; those in `path` replace the built-in ones.

    A file is YAML or JSON: {models: {NAME: {prompt, completion, embedding}}}, `models:` may be left out. Raises
    BadPrices.
    """
    prices = _read(PRICES)
    return prices | _read(Path(path)) if path else prices


def price_of(model: str, prices: Mapping[str, Price]) -> Price:
    """Return the price of a model, also under a provider's prefix (`meta-llama/…`, `openai:…`). Raises UnknownPrice."""
    name = model.lower()
    for known in (name, name.rpartition("/")[2], name.removeprefix("openai:")):
        if known in prices:
            return prices[known]
    near = difflib.get_close_matches(name.rpartition("/")[2], prices, 3)
    hint = f"; near it: {', '.join(near)}" if near else ""
    raise UnknownPrice(
        f"no price is known of {model!r}{hint}: give a price file with models: {{{model}: {{prompt: …}}}}"
    )


def price_or_free(model: str, prices: Mapping[str, Price]) -> Price:
    """Return the price of a model; a model without a known price costs nothing."""
    try:
        return price_of(model, prices)
    except UnknownPrice:
        return Price()


def add_prices(configuration: AnswerSettings, prices: Mapping[str, Price]) -> AnswerSettings:
    """Return `configuration` with the known prices of agents that have none, so that each call records its cost."""
    agents = [_add_price(agent, prices) for agent in all_agents(configuration)]
    none = configuration.llm.model_copy(update={"model": "", "url": "", "key": ""})  # it is among the agents now
    return configuration.model_copy(update={"agents": agents, "llm": none})


def _add_price(agent: AgentSettings, prices: Mapping[str, Price]) -> AgentSettings:
    if agent.prompt_price or agent.completion_price:
        return agent
    price = price_or_free(agent.model, prices)
    return agent.model_copy(update={"prompt_price": price.prompt, "completion_price": price.completion})


def _read(path: Path) -> dict[str, Price]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadPrices(f"{path}: can't be read: {' '.join(str(error).split())[:300]}") from error
    models = loaded.get("models", loaded) if isinstance(loaded, dict) else None
    if not isinstance(models, dict):
        raise BadPrices(f"{path}: must be a table of models, NAME: {{prompt: 2.5, completion: 10}}")
    return {str(name).lower(): _price(path, str(name), row) for name, row in models.items()}


def _price(path: Path, name: str, row: Any) -> Price:
    fields = {"prompt", "completion", "embedding"}
    if not isinstance(row, dict) or not set(row) & fields or set(row) - fields - {"source"}:
        raise BadPrices(
            f"{path}: {name}: give any of prompt, completion, embedding (US dollars per million), not {row!r}"
        )
    for field in fields & set(row):
        value = row[field]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise BadPrices(f"{path}: {name}: {field} is {value!r}: it must be a number of dollars, 0 or more")
    return Price(**{field: float(row[field]) for field in fields & set(row)}, source=str(row.get("source", "")))


# ---------------------------------------------------------------------------------------------- of questions


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of questions in US dollars, with the mean tokens and calls of one."""

    questions: int
    total: float
    per_question: float
    per_1000: float
    prompt_tokens: float
    completion_tokens: float
    calls: float


def bill(usages: Sequence[Usage], embedding: float = 0.0) -> Bill:
    """Return the cost of questions with these usages, as it was recorded.

    `embedding` is the US dollars of embedding all of them.
    """
    n, used = len(usages) or 1, sum(usages, Usage())
    total = used.cost + embedding
    each = total / n
    return Bill(
        len(usages), total, each, 1_000 * each, used.prompt_tokens / n, used.completion_tokens / n, used.calls / n
    )
