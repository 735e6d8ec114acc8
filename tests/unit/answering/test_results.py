"""Results, when no section certainly answers: sections in ranking order, each with its best passage."""

import asyncio
import re
from dataclasses import replace

import pytest
from kit.answering import Alike, extract, make_hit

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.synthesis.extractive import choose
from pipelines.answering.synthesis.passages import split_passages, whole_steps
from pipelines.answering.synthesis.results import MOST_RESULTS, RESULTS, tell_apart
from pipelines.answering.synthesis.shortening import cut_block, is_cut
from pipelines.records import RESULTS as SHOWN
from pipelines.records import Hit

FILLER = "The cache holds what was read before, so that the disk is read less often than it would be. "
ASKED = "How do I clear the cache?"


def section(name: str, text: str, page: str = "cache", **fields: str) -> Hit:
    return replace(make_hit(f"https://d.test/{page}#{name}", text, ("Cache", name)), title="The cache", **fields)


def show(question: str, *hits: Hit) -> str:
    return extract(question, *hits)[0]


def words(text: str) -> int:
    return len(text.replace("**", "").split())


def test_sections_keep_ranking_order_even_if_another_fits_better() -> None:
    hits = [
        section("Sizes", FILLER),
        section("Clearing", "Call `clear()` to clear the cache."),
        section("Disks", FILLER * 2),
    ]
    made, result, task = extract(ASKED, *hits)
    assert result.form == SHOWN and task.hits == tuple(hits)
    assert made.index("Sizes** [1]") < made.index("Clearing** [2]") and "`clear()`" in made


@pytest.mark.parametrize("many", [1, 3, 5, 9])
def test_up_to_five_sections_are_shown_in_600_words_with_their_command(many: int) -> None:
    hits = [
        section(
            f"Cache {n}",
            f"{FILLER * 9}Disk {n} has it.\n\nClear cache {n} so:\n\n```\nclear --cache {n}\n```\n\n{FILLER * 9}",
        )
        for n in range(many)
    ]
    made = show(ASKED, *hits)
    assert made.count("clear --cache") == min(many, MOST_RESULTS) and words(made) <= RESULTS + 40
    assert ("…" in made) == (many > 1), "it tells where something is left out"


def test_subsection_with_the_command_is_shown_below_its_section_but_once() -> None:
    run = "Clear the cache so:\n\n```\nclear --cache\n```"
    whole = section("Clearing", "The cache is cleared in two steps.", below=f"**Run it**\n\n{run}")
    other = section("Sizes", FILLER * 2)
    part = replace(section("Run it", run), headings=("Cache", "Clearing", "Run it"))
    assert "clear --cache" in show(ASKED, whole, other), "another section of the page is shown too"
    assert show(ASKED, whole, part).count("clear --cache") == 1


def test_duplicate_texts_are_shown_once() -> None:
    text = "To clear the cache of the service, call `clear()` in a shell, then restart the service at once."
    hits = [section("Clearing", text), section("Clearing", text, page="old"), section("Disks", FILLER)]
    assert show(ASKED, *hits).count("`clear()`") == 1


STEPS = [f"Step {n} of it takes the part with number {n} out." for n in range(1, 9)]


def test_steps_start_with_the_first_and_continue_after_code() -> None:
    text = (
        f"1. {STEPS[0]}\n\n```\ntake 1\n```\n\n2. {STEPS[1]}\n\n```\ntake 2\n```\n\n"
        f"3. To clear the cache, run this:\n\n```\nclear --all\n```\n\n4. {STEPS[3]}"
    )
    made = show(ASKED, section("Service", text))
    assert [int(n) for n in re.findall(r"(?m)^(\d)\.", made)] == [1, 2, 3, 4] and "clear --all" in made


@pytest.mark.parametrize("begin", ["1. ", "1) "])
def test_long_list_of_steps_ends_after_a_whole_step(begin: str) -> None:
    steps = "\n".join(
        f"{begin.replace('1', str(n))}{'Clear the cache of disk ' + str(n) + ', then wait. '}{FILLER * 2}".rstrip()
        for n in range(1, 30)
    )
    made = show(
        ASKED,
        section("Service", f"To clear the cache:\n\n{steps}"),
        *(section(str(n), FILLER + str(n)) for n in range(4)),
    )
    numbers = [int(n) for n in re.findall(r"(?m)^(\d+)[.)] ", made)]
    assert numbers == list(range(1, len(numbers) + 1)) and 1 < len(numbers) < 29
    last = made[made.index(f"disk {numbers[-1]},") :]
    assert last.split("\n")[0].endswith("would be.") and last.split("\n\n")[1] == "…"


def test_unordered_list_shows_its_relevant_items() -> None:
    items = [f"- `--option-{n}` is for case {n} of the program and no other" for n in range(30)]
    items[17] = "- `--clear` clears the cache"
    made = show("Which option clears the cache?", section("Options", "\n".join(["It takes options:\n", *items])))
    assert "`--clear`" in made and "`--option-25`" not in made


@pytest.mark.parametrize("mark", ["-", "1.", "|"])
def test_introduction_is_shown_with_the_start_of_its_list_or_table(mark: str) -> None:
    said = f"the cache of disk {{}} {FILLER * 3}"
    rows = [f"| {said.format(n)} |" if mark == "|" else f"{mark} {said.format(n)}" for n in range(12)]
    head = ["| what |", "| --- |"] if mark == "|" else []
    listed = section("Disks", "\n".join(["Here is a list of caches that you can clear:\n", *head, *rows]))
    others = [
        section(f"Cache {n}", f"Clear cache {n}. {' '.join(f'Shelf{n}x{i} is cold.' for i in range(60))}", f"p{n}")
        for n in range(4)
    ]
    made = show(ASKED, *others, listed)
    assert "the cache of disk" in made.partition("Disks** [5]")[2]


def test_follow_up_results_start_with_its_subject_then_the_others() -> None:
    hits = [
        section("Printers", f"Clear the queue of the printer. {FILLER}"),
        section("Wiping", "The tool wipe can clear old files from all folders that nobody opens."),
    ]
    shown = asyncio.run(choose("clear it", hits, about="the printer"))
    assert [quote.hit for quote in shown] == [0, 1]


def test_steps_of_two_lists_are_not_merged() -> None:
    passages = split_passages(
        "1. One.\n2. Two.\n\nOther things are done here, and they are not steps. They end.\n\n1. Uno.\n2. Dos."
    )
    at = next(passage.place for passage in passages if "Uno" in passage.plain)
    assert "Two" not in " ".join(passage.plain for passage in whole_steps(passages, at))


@pytest.mark.parametrize(("text", "kept"), [
    ("One two three. Four five six. Seven eight nine.", "One two three. Four five six. …"),
    ("- one two three\n- four five\n    - six\n- seven eight nine", "- one two three\n- four five\n    - six\n\n…"),
    ("| a |\n| --- |\n| c d |\n| e f |\n| g h |", "| a |\n| --- |\n| c d |\n| e f |\n| … |"),
    ("```sh\none two three\nfour five six\nseven eight\n```", "```sh\none two three\nfour five six\n…\n```"),
])  # fmt: skip
def test_block_is_cut_after_a_whole_sentence_item_row_or_line(text: str, kept: str) -> None:
    [passage] = split_passages(text)
    shorter = cut_block(passage.blocks[0], len(kept.split()) - 1 if text.startswith("-") else 6)
    assert shorter and shorter.text == kept and is_cut(shorter)
    assert cut_block(passage.blocks[0], 0) is None


def test_titles_distinguish_results() -> None:
    hits = [
        make_hit("https://d.test/linux#start", "a", ("Linux", "Start")),
        make_hit("https://d.test/mac#start", "b", ("macOS", "Start")),
        make_hit("https://d.test/mac#stop", "c", ("macOS", "Stop")),
    ]
    assert tell_apart(hits) == ["Guide › Linux › Start", "Guide › macOS › Start", "Guide › Stop"]
    versions = [replace(hits[0], version=version) for version in ("1.0", "2.0")]
    assert tell_apart(versions) == ["Guide › Linux › Start (1.0)", "Guide › Linux › Start (2.0)"]
    pages = [replace(hits[0], url=f"https://d.test/{name}", sources=(f"https://d.test/{name}#start",)) for name in "ab"]
    assert len(set(tell_apart(pages))) == 2
    assert tell_apart([replace(hits[0], title="", headings=())]) == ["https://d.test/linux"]


def test_two_questions_in_one_have_alternating_results() -> None:
    hits = [section(f"Clearing {n}", f"Clear the cache with `clear {n}`.") for n in range(4)]
    hits += [section(f"Colors {n}", f"The colors of the page are set in file {n}.") for n in range(4)]
    parts = ("How do I clear the cache?", "Where are the colors of the page set?")
    shown = asyncio.run(choose(" ".join(parts), hits, parts=parts))
    assert len(shown) <= MOST_RESULTS and not any(quote.certain for quote in shown)


def test_follow_up_without_a_hit_about_its_subject_has_no_answer() -> None:
    text = "To clear the cache, call `clear()` in a shell of the service, which takes a second. " * 4
    hit = replace(section("Clear the cache", text), ranks={"vector": 1, "bm25": 1})
    sure = Evidence(terms=4, texts=800, words=1.0, cosine=1.0)
    for about, certain in (("", True), ("the cache", True), ("the printer", False)):
        quotes = asyncio.run(choose("clear the cache", [hit], Alike(), sure, about))
        assert [quote.certain for quote in quotes] == [certain], about
