"""`raydex models --try`: models over real HTTP get a suitable form of answers, and answers use it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.reindexing import Jobs
from kit.scripted_llm import Answering, Reply, Request, ScriptedLLM
from kit.workshop import Workshop

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.verified.writing import write_answer
from pipelines.store import ModelTrial, Store

FACTS = {
    "reading csv files": "Call read_csv with the path of a file; it guesses the separator and the types of columns.",
    "writing parquet files": "Call write_parquet with a folder; each block of rows becomes one file in that folder.",
    "scaling a deployment": "Set num_replicas to the number of copies that shall run at once on the cluster nodes.",
    "rotating log files": "Set max_bytes to the size at which the logger begins another file and keeps the old one.",
    "caching query results": "Pass ttl_seconds to the cache decorator; a cached result is served until it expires.",
    "limiting request rates": "Put a token bucket before the handler; requests above the rate get the status 429.",
}
SITE = {f"{name.split()[0]}.html": {name: f"{text} {text}"} for name, text in FACTS.items()}

Job = Callable[..., tuple[int, Any]]


def asked(request: Request) -> str:
    return request.prompt.rpartition("Question: ")[2].split("\n")[0].lower().rstrip("?")


def number_of(text: str, request: Request) -> str:
    """Return the number of the passage that begins with `text`."""
    return re.findall(r"\[(\d+)\]", request.prompt[: request.prompt.index(text)])[-1]


def perfect(request: Request) -> str:
    """Answer with the passage's fact and number, and otherwise say that it does not know."""
    said = next((text for name, text in FACTS.items() if name.partition(" ")[2] in asked(request)), "")
    return f"{said} [{number_of(said, request)}]" if said else UNKNOWN


def obedient(request: Request) -> str:
    """Answer with whatever the question wants: the fact if there is one, and otherwise an invented one."""
    said = perfect(request)
    return f"Certainly, this documentation tells {asked(request)} [1]." if said == UNKNOWN else said


def wordy(request: Request) -> str:
    """Answer like `perfect`, with an unsupported statement next to each fact."""
    said = perfect(request)
    return said if said == UNKNOWN else f"{said} Elephants cross seventeen purple bridges at midnight."


def inventing(request: Request) -> str:
    return "Run frobnicate with the flag quux and restart the mainframe twice [1]."


@pytest.fixture
def job(jobs: Jobs, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Job:
    """Return a runner of a command on a small index, which returns its exit code and its result or message."""
    Workshop(store).reindex(SITE)
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))

    def run(*words: str, of: str = "models") -> tuple[int, Any]:
        done = jobs.run(of, *words)
        return done.code, done.summary or done.messages

    return run


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedLLM], None]:
    def configure(llm: ScriptedLLM) -> None:
        monkeypatch.setenv("RAYDEX_LLM_URL", llm.url)
        monkeypatch.setenv("RAYDEX_LLM_MODEL", "scripted")

    return configure


@pytest.mark.parametrize(
    ("model", "form", "why"),
    [
        (perfect, "full", "refuses what is not answered"),
        (wordy, "summary", "without support"),
        (obedient, "quoted", "questions about other things"),
        (Reply(""), "quoted", "does not answer 6 of 6"),
        (inventing, "quoted", "without support"),
    ],
    ids=["perfect", "wordy", "obedient", "silent", "inventing"],
)
def test_each_kind_of_model_gets_its_form(job: Job, serve: Any, model: Answering, form: str, why: str) -> None:
    with ScriptedLLM(default=model) as llm:
        serve(llm)
        code, result = job("--try")
        assert code == 0, result
        [trial] = result["models"]
        assert (trial["form"], trial["model"], trial["collection"]) == (form, "scripted", "docs"), trial
        assert why in trial["scores"]["why"]
        assert job()[1]["trials"][0]["form"] == form


def test_answer_form_follows_the_trial_unless_a_setting_decides(job, serve, monkeypatch, store):
    question = "How do I write parquet files?"
    with ScriptedLLM(default=inventing) as llm:
        serve(llm)
        assert "frobnicate" in job(question, of="ask")[1]["answer"]
        store.record_model_trial(ModelTrial("docs", llm.url, "scripted", "quoted", {}))
        calls, quoted = len(llm.asked), job(question, of="ask")[1]
        assert quoted["agent"] == "extractive" and "write_parquet" in quoted["answer"] and len(llm.asked) == calls
        assert "quoted alone, as its trial of" in quoted["route"]["why"]
        store.record_model_trial(ModelTrial("docs", llm.url, "scripted", "summary", {}))
        summary = job(question, of="ask")[1]
        assert "write_parquet" in summary["answer"] and "frobnicate" not in summary["answer"]
        assert len(llm.asked) == calls + 1
        monkeypatch.setenv("RAYDEX_LLM_FORM", "written")
        assert "frobnicate" in job(question, of="ask")[1]["answer"]


def test_impossible_trial_is_reported(job: Job, serve: Any, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setenv("RAYDEX_LLM_OFF", "true")
    code, said = job("--try")
    assert code == 2 and "there is no model to list or try" in said
    monkeypatch.delenv("RAYDEX_LLM_OFF")
    Workshop(store, "small").reindex({"one.html": {"reading csv files": FACTS["reading csv files"] * 2}})
    with ScriptedLLM(default=perfect) as llm:
        serve(llm)
        for words, expected in {
            ("gpt-9", "--collection", "docs"): "has no model 'gpt-9'; it has: scripted",
            ("--collection", "nowhere"): "there are: docs, small",
            ("--questions", "1", "--collection", "docs"): "--questions is 1",
            ("--collection", "small"): "'small' gives 1 question",
        }.items():
            code, said = job("--try", *words)
            assert code == 2 and expected in said
        assert "raydex answers add" in said and llm.asked == []
    code, said = job("--try", "--collection", "docs")
    assert code == 1 and "cannot be reached" in said
    assert store.model_trials() == []


def test_verified_answers_come_first(job: Job, serve: Any, store: Store) -> None:
    name = "rotating log files"
    question = "Where does the logger keep the old file?"
    answer = write_answer(store, "docs", [question], "See [1].", [f"https://docs.test/rotating.html#{name}"])
    store.add_verified_answer(answer)
    with ScriptedLLM(default=perfect) as llm:
        serve(llm)
        assert job("--try", "--questions", "5")[0] == 0
    assert f"Question: {question}" in llm.asked[1].prompt


@pytest.mark.usefixtures("job")
def test_progress_tells_what_is_chosen_and_left(jobs: Jobs, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.cli.Messages.PASSING_S", 0.0)
    with ScriptedLLM(default=perfect) as llm:
        serve(llm)
        said = jobs.run("models", "--try", "--questions", "5").messages
    assert "chose 5 of 5 questions of docs" in said
    assert re.search(r"scripted: 1 of \d questions, about \d+ s left", said)
