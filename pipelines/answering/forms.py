"""Chooses the form of an agent's answers: written, quoted with a summary, or only quoted.

The agent's setting decides. If it is "auto", the trial of its model on the collection decides (`raydex models --try`);
without a trial, answers are written.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents, change
from pipelines.answering.settings.agents import AUTO
from pipelines.llm.servers.http import without_password
from pipelines.records import FULL, QUOTED, SUMMARY, WRITTEN, Form
from pipelines.store import ModelTrial, Store

SAID: Mapping[Form, str] = {
    WRITTEN: "written",
    FULL: "written from whole sections",
    SUMMARY: "quoted, with a summary",
    QUOTED: "quoted alone",
}

# A busy service rarely asks the database; a trial takes minutes anyway. Readers may name any collection.
KEPT_S, MOST_KEPT = 5.0, 1_000


@dataclass(frozen=True, slots=True)
class ChosenForm:
    """The form of an answer and the reason for it; the reason is "" if nothing was chosen."""

    form: Form = WRITTEN
    why: str = ""


class FormFinder:
    """Finds the form of the answers of `agents`; `collection` is the default for questions that name none.

    The store's reply about a collection is cached for KEPT_S seconds.
    """

    def __init__(self, agents: Iterable[AgentSettings], store: Store | None = None, collection: str = "") -> None:
        self._agents = {agent.name: agent for agent in agents}
        self._store, self._collection = store, collection
        self._kept: dict[tuple[str, str], tuple[ChosenForm, float]] = {}

    async def find(self, agent: str, collection: str | None = None) -> ChosenForm:
        """Return the form of an agent's answers from a collection. Raises CollectionNotNamed and StoreUnavailable."""
        chosen = self._agents.get(agent)
        if chosen is None or (chosen.form == AUTO and self._store is None):
            return ChosenForm()
        if chosen.form != AUTO:
            return ChosenForm(chosen.form, f"answers are {SAID[chosen.form]}, as its setting `form` says")
        key, now = (agent, collection or self._collection), time.monotonic()
        found, until = self._kept.get(key, (ChosenForm(), now))
        if until <= now:
            found = await asyncio.to_thread(self._of_trial, chosen, key[1])
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = found, now + KEPT_S
        return found

    def _of_trial(self, agent: AgentSettings, collection: str) -> ChosenForm:
        assert self._store is not None
        name = collection or choose_collection(self._store.collections())
        trial = self._store.model_trial(name, endpoint_of(agent), agent.model)
        return ChosenForm(trial.form, f"answers are {SAID[trial.form]}, {_source(trial)}") if trial else ChosenForm()


def endpoint_of(agent: AgentSettings) -> str:
    """Return the URL of an agent's endpoint in the form that trials store."""
    return without_password(agent.base_url).rstrip("/")


def settle_forms(settings: AnswerSettings, store: Store, collection: str) -> AnswerSettings:
    """Return the settings with the forms that trials recommend now.

    An evaluation uses these settings, so that its name contains the forms that it measured.
    """
    undecided = [agent for agent in all_agents(settings) if agent.form == AUTO]
    trials = {agent.name: store.model_trial(collection, endpoint_of(agent), agent.model) for agent in undecided}
    forms = {name: trial.form for name, trial in trials.items() if trial}
    if not forms:
        return settings
    agents = [agent.model_copy(update={"form": forms.get(agent.name, agent.form)}) for agent in settings.agents]
    return change(settings, {"agents": agents, "llm.form": forms.get("llm", settings.llm.form)})


def describe_forms(agents: Iterable[AgentSettings], trials: Sequence[ModelTrial]) -> Iterator[str]:
    """Yield a line for each agent; agents with the form "auto" get one for each trial of their model."""
    for agent in agents:
        of_agent = [one for one in trials if (one.endpoint, one.model) == (endpoint_of(agent), agent.model)]
        if agent.form != AUTO:
            yield f"answers by {agent.model} are {SAID[agent.form]}, as the setting `form` says"
        elif not of_agent:
            yield f"{agent.model} has not been tried: `raydex models --try` tells how good it is for a collection"
        for trial in of_agent if agent.form == AUTO else ():
            yield f"{trial.collection}: answers by {agent.model} are {SAID[trial.form]}, {_source(trial)}"


def _source(trial: ModelTrial) -> str:
    return f"as its trial of {trial.tried:%Y-%m-%d} recommends"
