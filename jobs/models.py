"""Lists the language models that answer, or tests how good they are for a collection.

`--try` asks each model questions with known sections of the collection (verified answers first, else its headings), and
off-topic questions, which it must refuse. The recommended form is stored: the service then quotes, or lets the model
write, accordingly, unless RAYDEX_LLM_FORM or an agent's `form` is set. Exit codes: 0 done, 1 an endpoint did not answer
(earlier results are stored), 2 bad input.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jobs.cli import DONE, BadInput, Messages, check_range, finish, main
from jobs.environment import find_models, open_store, read_configuration
from jobs.flags import OR_DEFAULT, Json, command
from pipelines.text.counts import counted
from pipelines.text.sheets import Grid, Sheet

if TYPE_CHECKING:
    from pipelines.answering.settings import AgentSettings
    from pipelines.store import Store
    from pipelines.text.progress import Progress

HEAD = ("model", "right section", "claims supported", "not answered", "others refused", "words/s", "answers")


def run(
    *,
    tried: Annotated[
        list[str] | None,
        Parameter(
            "--try",
            consume_multiple=True,
            help="try these models of the endpoint, or agents by name; without names every model of an agent",
        ),
    ] = None,
    collection: Annotated[str | None, Parameter(help=f"collection to try them on {OR_DEFAULT}")] = None,
    questions: Annotated[int, Parameter(help="questions with known sections; half as many about other things")] = 20,
    as_json: Json = False,
) -> int:
    from pipelines.answering.retrieval.live import choose_collection

    check_range("--questions", questions, 5, 200)
    with open_store() as store, Messages() as messages:
        settings, found = find_models(read_configuration())
        agents = choose_agents(settings, tried or (), "; ".join(found.lines))
        if tried is None:
            return show_models(store, agents, as_json)
        collection = choose_collection(store.collections(), collection or settings.collection)
        trials = try_models(store, settings, agents, collection, questions, messages)
    summary = {"collection": collection, "models": trials}
    finish(summary, as_json, describe(collection, trials))
    return DONE


def choose_agents(settings: Any, names: Sequence[str], missing: str) -> "list[AgentSettings]":
    """Return the agents with these names or models; other models are looked up at the first agent's endpoint.

    Raises BadInput, with `missing` if there is no agent, and NoAnswer.
    """
    from pipelines.answering.settings import all_agents
    from pipelines.llm.servers import look_at

    agents = all_agents(settings)
    if not agents:
        raise BadInput(f"there is no model to list or try: {missing}")
    known = {**{agent.model: agent for agent in reversed(agents)}, **{agent.name: agent for agent in agents}}
    if set(names) <= known.keys():
        return [known[name] for name in names] or agents
    first = agents[0]
    server = look_at(first.base_url, first.api_key)
    served = [model.name for model in server.models]
    for name in names:
        if name not in known and server.find(name) is None:
            raise BadInput(f"{server.shown} has no model {name!r}; it has: {', '.join(served) or 'none'}")
    return [known.get(name) or first.model_copy(update={"model": name}) for name in names]


def try_models(
    store: "Store", settings: Any, agents: "Sequence[AgentSettings]", collection: str, most: int, progress: "Progress"
) -> list[dict[str, Any]]:
    """Try each model, and store the recommendation. Raises the errors of `open_trial` and `try_model`."""
    from pipelines.answering.forms import endpoint_of
    from pipelines.evaluation.trials.recommendation import recommend
    from pipelines.evaluation.trials.trial import open_trial
    from pipelines.store import ModelTrial

    trials = []
    with open_trial(store, settings, collection) as runner:
        progress(f"choosing {counted(most, 'question')} of {collection}")
        questions = runner.choose(store, most, progress)
        for agent in agents:
            scores = runner.try_model(agent, questions, progress)
            form, why = recommend(scores)
            trial = ModelTrial(collection, endpoint_of(agent), agent.model, form, asdict(scores) | {"why": why})
            store.record_model_trial(trial)
            trials.append(asdict(trial))
    return trials


# ------------------------------------------------------------------------------------------- output


def show_models(store: "Store", agents: "Sequence[AgentSettings]", as_json: bool) -> int:
    """Print the agents' models, and the forms of their answers."""
    from pipelines.answering.forms import describe_forms

    trials = store.model_trials()
    named = [{"agent": one.name, "model": one.model, "endpoint": one.base_url, "form": one.form} for one in agents]
    finish(
        {"models": named, "trials": [asdict(trial) for trial in trials]},
        as_json,
        "\n".join(describe_forms(agents, trials)),
    )
    return DONE


def describe(collection: str, trials: Sequence[Mapping[str, Any]]) -> Sheet:
    """Return the table of models, and the reasons."""
    from pipelines.answering.forms import SAID

    rows = [[trial["model"], *cells(trial["scores"]), SAID[trial["form"]]] for trial in trials]
    first = trials[0]["scores"]
    head = (
        f"collection {collection}: {counted(first['asked'], 'question')} with known sections (quotations cite the "
        f"right one of {first['quoted']}), {first['foreign']} about other things"
    )
    return Sheet(head, ["", Grid(HEAD, rows, "<>>>>><"), "", *reasons(trials)])


def cells(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counts of a trial, in the order of HEAD."""
    yield f"{scores['cited']} of {scores['asked']}"
    yield f"{scores['supported']} of {scores['claims']}"
    yield str(scores["asked"] - scores["answered"])
    yield f"{scores['refused']} of {scores['foreign']}"
    yield f"{scores['words_s']:.1f}"


def reasons(trials: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the reason for each recommended form, and how to override it."""
    yield from (f"{trial['model']}: {trial['scores']['why']}" for trial in trials)
    yield "The service answers this way from now on; RAYDEX_LLM_FORM=written, full, summary or quoted overrides it."


app = command("models", __doc__, run)


if __name__ == "__main__":
    main(app)
