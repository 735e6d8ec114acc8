"""The forms of an agent's answers: written, quoted with a summary, quoted only. A setting wins over a trial."""

import asyncio
import math
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.queued_model import Says

from pipelines.answering import forms, hit_finder
from pipelines.answering.engine import QueryEngine
from pipelines.answering.forms import FormFinder, describe_forms, settle_forms
from pipelines.answering.grounding.support import Passages
from pipelines.answering.question import Question
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents
from pipelines.answering.synthesis.base import Task
from pipelines.answering.writing.agents import LLMAgent
from pipelines.answering.writing.stages.text import read_text
from pipelines.answering.writing.summary import SummaryFilter
from pipelines.lexical import LexicalIndex
from pipelines.llm.errors import LLMEmpty
from pipelines.records import Form, Index, IndexSettings
from pipelines.store import ModelTrial

IN_SHORT = "**In short, according to the language model:**"

CODE = "```python\nds = data.read_csv('iris.csv')\n```"
CSV = make_hit(
    "https://d.test/io#csv",
    f"To read a CSV file, call `read_csv` with its path:\n\n{CODE}\n\nThe types of its columns are guessed from rows.",
    ("Input", "Read a CSV file"),
)
OTHER = make_hit("https://d.test/tune#stop", "The scheduler stops bad trials early and saves compute.", ("Tune",))
HITS = (CSV, OTHER)
ASKED = "How do I read a CSV file?"
ENDPOINT = "http://127.0.0.1:1/v1"


class Trials(MemoryStore):
    """A store with trials of models that counts the look-ups."""

    def __init__(self, *trials: ModelTrial) -> None:
        super().__init__(*HITS)
        self.trials, self.asked = trials, 0

    def model_trial(self, collection: str, endpoint: str, model: str) -> ModelTrial | None:
        self.asked += 1
        wanted = (collection, endpoint, model)
        return next((one for one in self.trials if (one.collection, one.endpoint, one.model) == wanted), None)


def agent(form: str = "auto") -> AgentSettings:
    return AgentSettings.model_validate({"name": "says", "model": "says", "base_url": f"{ENDPOINT}/", "form": form})


def engine(retriever: Retriever, model: Says, form: Form) -> QueryEngine:
    return QueryEngine(retriever, agents=[LLMAgent("says", model)], forms=FormFinder([agent(form)]))


def test_quotation_comes_first_then_the_text_its_section_supports(retriever: Retriever) -> None:
    model = Says(
        "Column types of a CSV file are guessed from its rows. ",
        "The moon landing was watched by millions of people. ",
        "Call `read_csv` with the path of a CSV file [1].",
    )
    answer = engine(retriever, model, "summary").query(ASKED)
    assert answer.text.startswith("**Read a CSV file**") and answer.text.index(CODE) < answer.text.index(IN_SHORT)
    assert "guessed from its rows" in answer.text.partition(IN_SHORT)[2] and "moon" not in answer.text
    assert answer.agent == "says" and answer.written_by == "model" and answer.known
    assert answer.claims.total == answer.claims.supported > 1
    assert [citation.source for citation in answer.citations] == ["https://d.test/io#csv"]
    assert OTHER.text not in model.run[0]
    assert answer.route is not None and "with a summary, as its setting `form` says" in answer.route.why


@pytest.mark.parametrize(
    "said",
    [
        "Use `frobnicate` instead:\n\n```python\ndata.frobnicate('iris.csv')\n```",
        "To read a CSV file, call `read_csv` with its path.",
        "Here is what to do:\n\n- The moon landing was watched by millions.",
        "I do not know: nothing in this collection seems to answer that.",
        "",
    ],
    ids=["code of its own", "what is quoted already", "a lead-in to nothing", "a refusal", "nothing"],
)
def test_nothing_follows_the_quotation_if_nothing_is_supported_or_new(retriever: Retriever, said: str) -> None:
    error = None if said else LLMEmpty("said nothing")
    answer = engine(retriever, Says(said, error=error), "summary").query(ASKED)
    assert CODE in answer.text and IN_SHORT not in answer.text and "frobnicate" not in answer.text
    assert answer.agent == "extractive" and answer.known
    assert answer.degraded == (() if said else ("llm:says",))


def test_repeating_model_is_stopped_and_shown_once(retriever: Retriever) -> None:
    model = Says(*["Column types of a CSV file are guessed from its rows. "] * 30, hangs=True)
    answer = engine(retriever, model, "summary").query(ASKED)
    assert answer.text.count("guessed from its rows") == 1 and model.cancelled


def test_code_of_a_passage_can_follow_the_quotation() -> None:
    hit = make_hit("https://d.test/io#more", f"{OTHER.text}\n\n{CODE}")
    said: list[str] = []
    kept = SummaryFilter(Passages([hit]), "Something else is quoted.", said.append)
    asyncio.run(kept.feed(read_text(f"Like this:\n\n{CODE}\n\n```\nrm -rf /\n```\n")))
    assert "Like this:" in "".join(said) and CODE in "".join(said) and "rm" not in "".join(said)


def test_quote_only_form_and_unanswerable_questions_call_no_model(retriever: Retriever) -> None:
    model = Says("Anything.")
    assert engine(retriever, model, "quoted").query(ASKED).agent == "extractive"
    assert not engine(retriever, model, "summary").query("Who won the world cup?").known
    assert model.run == []
    written = engine(retriever, model, "quoted").query(ASKED, mode="compact")  # a reader asks for it by name
    assert len(model.run) == 1 and written.agent == "says"


# ------------------------------------------------------------------------- from whole sections, by a capable model

LONG = [
    make_hit(
        "https://d.test/long#steps", f"Step {n} of the upgrade: run `upgrade --stage {n}`.", ("Upgrade",), ordinal=n
    )
    for n in range(6)
]


def test_capable_model_reads_each_whole_section_once(retriever: Retriever, store: MemoryStore) -> None:
    model = Says("Run `upgrade --stage 0` and so on [1].")
    store.publish(1, *LONG, *HITS)
    answer = engine(retriever, model, "full").query("How do I upgrade stage 3?")
    (prompt,) = model.run
    assert all(prompt.count(f"upgrade --stage {n}`") == 1 for n in range(6))
    assert [hit.source for hit in answer.hits].count("https://d.test/long#steps") == 1
    assert "Write what the reader needs to act" in prompt
    assert answer.route is not None and "written from whole sections" in answer.route.why


def test_sections_beyond_its_window_are_left_out(retriever: Retriever, store: MemoryStore) -> None:
    parts = (make_hit(f"https://d.test/{n}#a", f"Part {n}: upgrade. " * 80, (f"Part {n}",)) for n in range(9))
    store.publish(1, *parts)
    model = Says("Upgrade it [1].")
    answer = engine(retriever, model, "full").query("upgrade?")
    (prompt,) = model.run
    shown = [n for n in range(9) if f"Part {n}: upgrade." in prompt]
    assert 1 <= len(shown) < 9 and len(answer.hits) == 9
    assert all(f"[{n}] " in prompt for n in range(1, len(shown) + 1)) and f"[{len(shown) + 1}] " not in prompt


def test_hits_and_sections_far_from_the_question_are_left_out() -> None:
    steps = make_hit("https://d.test/moor#a", "Moor the vessel with a bowline.", ("Mooring",))
    found = [replace(steps, score=5.0, score_kind="learned")] + [
        replace(
            make_hit(f"https://d.test/{score}#a", f"Kind {score}.", (f"{score}",)), score=score, score_kind="learned"
        )
        for score in (4.0, 1.5, 0.5, -3.0)
    ]
    page = [
        steps,
        make_hit("https://d.test/moor#b", "A bowline holds the vessel.", ("Ropes",), ordinal=1),
        make_hit("https://d.test/moor#c", "Paint the vessel. " + "Red or blue. " * 900, ("Paint",), ordinal=2),
        *(make_hit(f"https://d.test/moor#{n}", f"The vessel {n}.", (f"V{n}",), ordinal=n) for n in range(3, 9)),
    ]
    index = Index(1, "docs", IndexSettings(), "live", 1)
    taken = Retrieval("moor a vessel with a bowline knot", (found[0],), index, 1, (), {}, pages=tuple(page))
    kept = hit_finder._with_more(taken, found).hits
    assert [hit.headings[0] for hit in kept] == ["Mooring", "4.0", "1.5", "Ropes"]  # "vessel" is in every section


@pytest.mark.parametrize(("form", "share"), [("written", 0.5), ("full", 0.75)])
def test_capable_model_reads_more_of_its_window(form: Form, share: float) -> None:
    hits = tuple(make_hit(f"https://d.test/{n}#a", f"Part {n}: upgrade. " * 60, (f"Part {n}",)) for n in range(40))
    model = Says("So [1].")
    model.context_window, model.context_share = 8_000, None

    async def answer() -> None:
        async for _ in LLMAgent("says", model).answer(Task("upgrade?", hits, form=form)):
            pass

    asyncio.run(answer())
    read = model.count(model.run[0].partition("[1] ")[2])
    assert 8_000 * (share - 0.12) < read < 8_000 * share + 100


GUIDE = [
    make_hit("https://d.test/guide", "Everything about boats, in three parts.", ("Boats",), ordinal=0),
    make_hit("https://d.test/guide#moor", "Moor the vessel with two ropes.", ("Boats", "Mooring"), ordinal=1),
    make_hit("https://d.test/guide#knot", "Tie a bowline, then pull.", ("Boats", "Mooring", "Knots"), ordinal=2),
    make_hit(
        "https://d.test/guide#paint", "Paint the hull, then let the bowline dry.", ("Boats", "Painting"), ordinal=3
    ),
]


def test_remaining_first_pages_follow_the_leading_hits(retriever: Retriever, store: MemoryStore) -> None:
    others = (make_hit(f"https://d.test/{n}#a", f"A bowline of kind {n}. Pull.", (f"Kind {n}",)) for n in range(40))
    store.publish(1, *GUIDE, *others)
    model = Says("Tie a bowline [1].")
    answer = engine(retriever, model, "full").query("tie a bowline, then pull")
    (prompt,) = model.run
    places = [prompt.find(hit.text) for hit in (GUIDE[2], GUIDE[0], GUIDE[1], GUIDE[3])]
    assert -1 not in places and places == sorted(places)
    assert answer.hits[0].chunk_id == GUIDE[2].chunk_id and {hit.score_kind for hit in answer.hits[-3:]} == {"extra"}


def test_other_questions_are_answered_while_sections_are_compared(
    retriever: Retriever, store: MemoryStore, monkeypatch
):
    threads = []
    monkeypatch.setattr(hit_finder, "plain_text", lambda text: threads.append(threading.current_thread()) or text)
    store.publish(1, *GUIDE, *HITS)

    async def ask_in_a_loop() -> None:
        await engine(retriever, Says("Tie a bowline [1]."), "full").aquery(Question("tie a bowline, then pull"))
        assert threads and threading.current_thread() not in threads

    asyncio.run(ask_in_a_loop())


def test_copy_is_read_once(retriever: Retriever, store: MemoryStore) -> None:
    said = "To moor the vessel in a storm, tie a bowline around both bollards and pull it tight."
    copies = [make_hit(f"https://d.test/{version}/moor", said, (f"Mooring {version}",)) for version in ("v1", "v2")]
    copies[1] = replace(copies[1], text=f"{said} Hurry.")
    store.publish(1, *copies, OTHER)
    model = Says("Tie a bowline [1].")
    engine(retriever, model, "full").query("moor the vessel in a storm")
    assert model.run[0].count("around both bollards") == 1


def test_hits_come_before_the_rest_of_a_long_section(retriever: Retriever, store: MemoryStore) -> None:
    filler = "The keel of a boat is long and made of oak. " * 60
    long = [make_hit("https://d.test/keel#a", f"{filler} Keel {n}.", ("Keels",), ordinal=n) for n in range(6)]
    store.publish(1, *long, *(make_hit(f"https://d.test/{n}#a", f"Oak keel {n}.", (f"Keel {n}",)) for n in range(5)))
    model = Says("Oak [1].")
    engine(retriever, model, "full").query("keel of oak, long boat")
    assert all(f"Oak keel {n}." in model.run[0] for n in range(5))


@pytest.mark.parametrize(("form", "quotes"), [("written", True), ("full", False)])
def test_refusal_of_a_capable_model_is_final(retriever: Retriever, form: Form, quotes: bool) -> None:
    model = Says("I do not know: nothing in this collection seems to answer that.")
    answer = engine(retriever, model, form).query(ASKED)
    assert len(model.run) == 1
    assert (CODE in answer.text, answer.known) == (quotes, quotes)


@pytest.mark.parametrize(("form", "asked"), [("written", 0), ("full", 1)])
def test_capable_model_is_asked_for_any_hits(retriever: Retriever, form: Form, asked: int) -> None:
    model = Says("I do not know: nothing in this collection seems to answer that.")
    assert not engine(retriever, model, form).query("Who won the world cup?").known
    assert len(model.run) == asked


def test_custom_prompt_is_used_with_whole_sections_too(retriever: Retriever) -> None:
    model = Says("Call it [1].")
    engine(retriever, model, "full").query(ASKED, templates={"qa": "Mine: {context} {question}"})
    assert "Mine: [1] " in model.run[0]


def test_setting_overrides_a_trial_and_another_model_has_its_own() -> None:
    store = Trials(ModelTrial("docs", ENDPOINT, "says", "quoted", {}))

    def form(setting: str, collection: str | None = None, name: str = "says") -> str:
        return asyncio.run(FormFinder([agent(setting)], store).find(name, collection)).form

    assert form("auto") == form("auto", "docs") == "quoted"
    assert form("written") == form("auto", "other") == form("auto", name="extractive") == "written"
    assert (form("summary"), form("full")) == ("summary", "full")


def test_evaluation_records_the_trial_forms_among_its_settings() -> None:
    settings = AnswerSettings.model_validate({"agents": [agent(), agent("written").model_copy(update={"name": "own"})]})
    store = Trials(ModelTrial("docs", ENDPOINT, "says", "quoted", {}))
    assert [one.form for one in all_agents(settle_forms(settings, store, "docs"))] == ["quoted", "written"]
    assert settle_forms(settings, store, "other") is settings
    single = AnswerSettings.model_validate({"llm": {"url": ENDPOINT, "model": "says"}})
    assert settle_forms(single, store, "docs").llm.form == "quoted"


def test_startup_reports_how_answers_are_made() -> None:
    [tried] = describe_forms([agent()], [ModelTrial("docs", ENDPOINT, "says", "summary", {})])
    assert tried.startswith("docs: answers by says are quoted, with a summary, as its trial of 20")
    [untried] = describe_forms([agent()], [ModelTrial("docs", "http://elsewhere/v1", "says", "quoted", {})])
    assert "`raydex models --try`" in untried
    [chosen] = describe_forms([agent("written")], [ModelTrial("docs", ENDPOINT, "says", "quoted", {})])
    assert "written, as the setting" in chosen


def test_busy_service_rarely_queries_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "KEPT_S", math.inf)

    async def ask(finder: FormFinder) -> None:
        for _ in range(3):
            await finder.find("says", "docs")

    store = Trials()
    asyncio.run(ask(FormFinder([agent()], store)))
    assert store.asked == 1


def test_quoted_subsection_keeps_the_urls_of_its_code(tmp_path) -> None:
    """A section that only introduces its subsections is quoted with them; their URLs are the documentation's own."""
    lead = replace(
        make_hit("https://d.test/m#merge", "Announce merges in one of two ways.", ("Announce merges",)), ordinal=0
    )
    below = replace(
        make_hit(
            "https://d.test/m#curl",
            "To announce merges, send them:\n\n```sh\ncurl https://ask.example.com/changes -d '[\"https://x.example.com/\"]'\n```",
            ("Announce merges", "By curl"),
        ),
        ordinal=1,
    )
    lexical = LexicalIndex(tmp_path)
    with closing(Retriever(MemoryStore(lead, below), lambda _: WordEmbedder(), lambda _: lexical)) as retriever:
        retriever.prepare()
        text = QueryEngine(retriever).query("How do I announce merges?", k=1).text
    assert "curl https://ask.example.com/changes -d '[\"https://x.example.com/\"]'" in text
