"""Extractive answers: the whole answering passage under its heading, or "I do not know" if nothing fits."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.answering import WordEmbedder, extract, make_hit, quote

from pipelines.answering.grounding.answerable import UNKNOWN, is_likely, is_possible
from pipelines.answering.grounding.confidence import CERTAIN
from pipelines.answering.hits import snippet
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.synthesis.base import Task
from pipelines.answering.synthesis.candidates import Candidates
from pipelines.answering.synthesis.extractive import FINALISTS, OF_SECTION, choose
from pipelines.answering.synthesis.quotes import hide_numbers
from pipelines.answering.synthesis.results import write_results
from pipelines.answering.writing.agents import AgentResult, ExtractiveAgent
from pipelines.records import Hit
from pipelines.text.languages import say

CSV = make_hit(
    "https://d.test/data#csv",
    "Datasets come from many places, and each format has a function of its own that reads it.\n\n"
    "To load comma separated files, use read_csv. It needs a path, e.g. a bucket:\n\n"
    "```python\nds = ray.data.read_csv(\n    's3://bucket/iris.csv',\n)\n```\n\nThe schema is inferred.",
    ("Loading data", "Loading CSV"),
)
TUNE = make_hit("https://d.test/tune#stop", "The ASHA scheduler stops bad trials early. It saves compute.", ("Tune",))


class Embedder(WordEmbedder):
    """Counts the batches and their texts."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    async def __call__(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        self.batches.append(list(texts))
        return self.embed_chunks(texts)


def answer(question: str, *hits: Hit, **more: Any) -> str:
    return extract(question, *hits, **more)[0]


def test_passage_is_quoted_under_its_heading_with_the_code_it_introduces() -> None:
    made = quote("How do I load comma separated files?", TUNE, CSV)
    assert made.startswith("**Loading CSV**\n\n")
    assert "To load comma separated files, use read_csv. It needs a path, e.g. a bucket:" in made
    assert "```python\nds = ray.data.read_csv(\n    's3://bucket/iris.csv',\n)\n```" in made


def test_shown_hits_come_first_in_order_so_their_numbers_ascend() -> None:
    more = make_hit("https://d.test/data#csv", "Files may lie anywhere.", ("Loading data", "Loading CSV"))
    made, result, task = extract("What does the ASHA scheduler do with bad trials?", CSV, more, TUNE)
    assert task.hits == (CSV, TUNE, more) and list(result.quoted) == [1, 2]
    assert made.endswith("**Guide › Tune** [2]\n\nThe ASHA scheduler stops bad trials early. It saves compute.")


def test_substitute_agent_keeps_the_announced_numbers() -> None:
    async def run() -> list[str | AgentResult]:
        task = Task("What does the ASHA scheduler do with bad trials?", (CSV, TUNE))
        return [part async for part in ExtractiveAgent().answer(task)]

    text, result = asyncio.run(run())
    assert isinstance(text, str) and text.index("[1]") < text.index("[2]") < text.index("ASHA")
    assert isinstance(result, AgentResult) and list(result.quoted) == [1, 2]


def test_another_section_is_shown_only_if_it_adds_something() -> None:
    twin = make_hit("https://d.test/other", CSV.text, ("Other",))
    assert answer("How do I load comma separated files?", CSV, twin).count("To load comma separated files") == 1
    trials = make_hit("https://d.test/a", "Bad trials are stopped early by a scheduler of Tune.", ("Trials",))
    text = "ASHA is a scheduler that stops bad trials early:\n\n```\nASHAScheduler(max_t=10)\n```"
    asha = make_hit("https://d.test/b", text, ("ASHA",))
    assert "ASHAScheduler(max_t=10)" in answer("stop bad trials early with the scheduler ASHA", trials, asha)


def test_one_batch_of_vectors_decides_between_the_best_by_words() -> None:
    embed = Embedder()
    answer("How do I load comma separated files?", CSV, TUNE, embed=embed)
    (batch,) = embed.batches
    assert batch[0] == "How do I load comma separated files?" and len(batch) <= 1 + FINALISTS + 2 * OF_SECTION


@pytest.mark.parametrize("hangs", [False, True])
def test_failing_or_hanging_model_costs_only_the_vectors(hangs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def embed(texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        if hangs:
            await asyncio.Event().wait()
        raise RuntimeError("the model broke")

    monkeypatch.setattr("pipelines.answering.grounding.support.WAIT_S", 0.05)
    assert "read_csv" in answer("How do I load comma separated files?", CSV, TUNE, embed=embed)


def test_support_is_higher_for_a_passage_that_answers() -> None:
    asked = ("How do I load comma separated files?", "Which places have files of photographs?")
    right, wrong = (extract(question, CSV, embed=Embedder())[1].quoted[1].score for question in asked)
    assert right > wrong


def test_results_that_hardly_answer_say_so() -> None:
    (result,) = asyncio.run(choose("Who stops bad trials early?", (TUNE,)))
    best, unsure = say("results", "en"), say("unsure", "en")
    assert write_results([result], (TUNE,)).startswith(f"{best}\n\n**Guide › Tune** [1]\n\n")
    assert write_results([replace(result, support=0.05)], (TUNE,)).startswith(f"{unsure}\n\n**Guide › Tune** [1]")


@pytest.mark.parametrize(
    ("asked", "hits", "said"),
    [
        ("How do I bake sourdough bread?", (CSV, TUNE), UNKNOWN),
        ("what is it?", (CSV,), UNKNOWN),
        ("How do photographs load slides?", (CSV, CSV, TUNE), f"{UNKNOWN} Closest matches: [1] [3]"),
        ("anything", (), UNKNOWN),
    ],
)
def test_unknown_answer_names_no_unrelated_section(asked: str, hits: Sequence[Hit], said: str) -> None:
    assert answer(asked, *hits) == said


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("How do I load an Excel file?", "read_csv"), ("Can I stop it by itself?", "ASHA"), ("excel schema", "inferred")],
)
def test_results_follow_i_do_not_know_only_if_nothing_is_close(asked: str, shown: str) -> None:
    close, far, hopeless = (Evidence(4, 12_000, *found) for found in ((0.85, 0.8), (0.65, 0.6), (0.3, 0.3)))
    assert is_possible(far) and not is_likely(close)
    unsure = say("unsure", "en")
    texts = [answer(asked, CSV, TUNE, evidence=evidence) for evidence in (close, far, hopeless)]
    assert texts[0].startswith(unsure) and shown in texts[0]
    assert texts[1].startswith(UNKNOWN) and shown in texts[1]
    assert texts[2] == UNKNOWN, "nothing is named where nothing passes the floor"


def test_section_of_the_named_object_comes_first() -> None:
    guide = make_hit("https://d.test/guide", "Large arguments go through ray.put, which tasks share.", ("Arguments",))
    text = "```python\nray.put(value)\n```\n\nStore an object, and return a reference to it."
    entry = make_hit("https://d.test/api#ray.put", text, ("ray.put",))
    assert quote("what does ray.put do", guide, entry).startswith("**ray.put**")
    assert quote("what do tasks share", guide, entry).startswith("**Arguments**")


@pytest.mark.parametrize(("asked", "cosine", "known"), [
    ("premature termination of bad trials", 0.6, True),
    ("premature termination of bad trials", 0.3, False),
    ("premature termination of hopeless runs", 0.6, False),
    ("Who stops bad trials early?", 0.3, True),
])  # fmt: skip
def test_close_vector_with_some_words_or_nearly_all_words_suffice(asked: str, cosine: float, known: bool) -> None:
    close = replace(TUNE, scores={"vector": cosine})
    assert (not answer(asked, close).startswith(UNKNOWN)) is known


def test_question_is_not_answered_with_itself() -> None:
    asking = make_hit("https://d.test/faq", "Who stops bad trials early?", ("Questions",))
    assert "The ASHA scheduler stops bad trials early." in quote("Who stops bad trials early?", asking, TUNE)


def test_changelog_is_quoted_only_on_request() -> None:
    old = make_hit("https://d.test/new", "The function read_csv reads comma separated files.", ("What’s New In 3.2",))
    guide = make_hit("https://d.test/guide", "A file of comma separated values is read with read_csv.", ("Files",))
    assert quote("read comma separated files", old, guide).startswith("**Files**")
    made = quote("what is new in version 3.2 to read comma separated files", old, guide)
    assert made.split("**")[1].startswith("What’s New")


def test_snippet_is_one_line_cut_between_words() -> None:
    assert snippet("one  two\nthree", 11) == "one two…" and snippet("short") == "short"


texts = st.lists(st.sampled_from(["Ray reads files.", "A file is read by Ray Data.", "x = 1", "\n\n", "[7]", "read"]))


@given(st.text(max_size=50), st.lists(texts.map(" ".join), max_size=4))
def test_every_citation_number_refers_to_a_hit(question: str, contents: list[str]) -> None:
    hits = [make_hit(f"https://d.test/{n}", text) for n, text in enumerate(contents)]
    for asked in (question, "How does Ray read files?"):
        made = re.sub(r"`[^`]*`|```.*?```", "", answer(asked, *hits), flags=re.DOTALL)
        assert {int(n) for n in re.findall(r"\[(\d+)\]", made)} <= set(range(1, len(hits) + 1))


@pytest.mark.parametrize(("quoted", "written"), [
    ("as [7] says, and [1, 2]", "as `[7]` says, and `[1, 2]`"),
    ("a note[^1] or 【2】", "a note`[^1]` or `【2】`"),
    ("mended [#12](https://d.test/12)", "mended [#12](https://d.test/12)"),
    ("the call tuple([1, 2, 3])", "the call tuple(`[1, 2, 3]`)"),
    ("the footnote [1](https://d.test/n) of it", "the footnote `[1]` of it"),
    ("`x[1]` and ``a`[1]`` stay", "`x[1]` and ``a`[1]`` stay"),
    ("- of [7]\n\n    ```\n    x[1]\n    ```\n- [8]", "- of `[7]`\n\n    ```\n    x[1]\n    ```\n- `[8]`"),
    ("[a link](https://d.test/) and names\\[1\\]", "[a link](https://d.test/) and names\\[1\\]"),
])  # fmt: skip
def test_numbers_that_cite_nothing_are_shown_as_code(quoted: str, written: str) -> None:
    assert hide_numbers(quoted) == written


def test_quote_is_the_markdown_of_its_source_under_an_escaped_heading() -> None:
    hit = make_hit("https://d.test/new", "The method `__init__()` runs after \\*args was read.", ("Objects", "*args"))
    made = quote("What does the method __init__ run after?", hit)
    assert made == "**\\*args**\n\nThe method `__init__()` runs after \\*args was read. [1]"


@pytest.mark.parametrize("block", [
    "| mode | meaning |\n| --- | --- |\n| `r` | read |\n| `w` | write, see [5] |",
    "1. Open the file:\n\n    ```py\n    f = open(path)\n    ```\n2. Choose its mode:\n    - to read\n    - to write",
    "> **Note**\n>\n> Files of other modes are opened by hand, never with open.",
])  # fmt: skip
def test_tables_nested_lists_and_notes_are_quoted_unchanged(block: str) -> None:
    hit = make_hit("https://d.test/open", f"A file is opened in a mode, with open:\n\n{block}", ("Open files",))
    assert quote("How is a file opened in a mode?", hit).removesuffix("[1]").rstrip().endswith(hide_numbers(block))


@pytest.mark.parametrize("lines", ["import tool\ntool.run()", "a | b\nc | d", ">>> tool.run()\n1"])
def test_lines_of_an_older_index_stay_unchanged(lines: str) -> None:
    hit = make_hit("https://d.test/o", f"To start the tool, run:\n\n{lines}", ("Start",))
    assert f"```\n{lines}\n```" in answer("How do I start the tool?", hit)


LEVELS = "The level of a logger decides which records of logging it handles. There are five levels, debug to critical:"
ROUTES = "Records of the logging levels that a handler takes too are written by each logger above it in the tree."


def certainty(question: str, *hits: Hit) -> float:
    """Return the first source's support if both legs found it first and its cosine is at the maximum."""
    best = [hit if hit.ranks else replace(hit, ranks={"vector": 1, "bm25": 1}) for hit in hits]
    candidates = Candidates(question, best)
    return candidates.best_of([replace(one, cosine=0.95) for one in candidates.rank()]).support


@pytest.mark.parametrize(("question", "heading", "text", "certain"), [
    ("which logging levels are there", ("Logging", "Logging levels"), f"{LEVELS} {ROUTES} {LEVELS}", True),
    ("which logging levels are there", ("Logging levels", "Caveats"), f"{LEVELS} {ROUTES} {LEVELS}", False),
    ("logging levels", ("Logging", "Passing records of levels upwards"), f"{ROUTES} {LEVELS} {ROUTES}", False),
    ("logging levels", ("Logging", "Why are levels of logging passed upwards?"), f"{ROUTES} {LEVELS} {ROUTES}", True),
    ("set logging levels", ("Logging levels",), f"{LEVELS} {ROUTES} {LEVELS}", False),
    ("set logging levels", ("Logging levels",), f"{LEVELS} {ROUTES} Set them by name.", True),
    ("set logging levels", ("Set logging levels",), f"{LEVELS} {ROUTES}\n\n```\nlog.set(\n    level,\n)\n```", True),
])  # fmt: skip
def test_headings_alone_make_no_quotation_certain(question, heading, text, certain):
    support = certainty(question, make_hit("https://d.test/logging#a", text, heading))
    assert (support >= CERTAIN) == certain, support


def test_quotation_without_the_code_of_its_section_is_not_certain() -> None:
    why = "Settings are read from variables of the environment, as they differ from machine to machine. " * 4
    more = "Names are those of the fields. Letters are large or small. Each value is checked when it is read. " * 3
    code = "This is what a class of them looks like, with one:\n\n```py\nclass Base(Model):\n    name: str = ''\n```"
    texts = ("\n\n".join(parts) for parts in ((why, more), (why, more, more, code)))
    whole, cut = (make_hit("https://d.test/s", text, ("Settings from variables of the environment",)) for text in texts)
    assert certainty("settings from environment variables", whole) >= CERTAIN
    assert certainty("settings from environment variables", cut) < CERTAIN
    assert certainty("What are settings from environment variables?", cut) >= CERTAIN


def test_prose_that_only_introduces_its_page_or_another_is_not_certain() -> None:
    text = "Set the logging levels of every part of a service, and read in its logs what it has done since. " * 2
    begins = replace(make_hit("https://d.test/logging", text, ("Set logging levels",)), title="Set logging levels")
    below = make_hit("https://d.test/logging#a", "Its own levels.", ("Set logging levels", "Parts"))
    points = make_hit("https://d.test/other#a", f"{text}\n\nTo learn more, read on there.", ("Set logging levels",))
    assert certainty("set logging levels", begins) >= CERTAIN > certainty("set logging levels", begins, below)
    assert certainty("set logging levels", points) < CERTAIN <= certainty("What are set logging levels?", points)


def test_complete_quotation_ranked_first_by_both_legs_is_certain() -> None:
    text = "Set the logging levels by name, each by a call of its logger: `logger.setLevel(name)`. " * 4
    hit = make_hit("https://d.test/logging#a", text, ("Set logging levels",))
    assert certainty("set logging levels", hit) >= CERTAIN
    for ranks in ({"vector": 1, "bm25": 2}, {"vector": 2, "bm25": 1}, {"vector": 1}):
        assert certainty("set logging levels", replace(hit, ranks=ranks)) < CERTAIN
    gap = make_hit("https://d.test/logging#a", f"{text}…\n\n{text}", ("Set logging levels",))
    assert certainty("set logging levels", gap) < CERTAIN
