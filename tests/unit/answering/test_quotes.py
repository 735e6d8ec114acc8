"""Quotations fit into a reader's glance: relevant rows, whole code, whole sentences."""

from dataclasses import replace

import pytest
from kit.answering import extract, make_hit
from kit.answering import quote as answer

from pipelines.answering.synthesis.passages import split_passages
from pipelines.answering.synthesis.quotes import FULL, Quote, fill, write
from pipelines.answering.synthesis.shortening import MOST_CODE_LINES, MOST_PROSE_WORDS, MOST_ROWS, bound
from pipelines.records import Hit

HEAD = ["| setting | default | what it does |", "| --- | --- | --- |"]
GAP = "| … |"


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_long_table_is_quoted_as_its_head_and_relevant_rows() -> None:
    rows = [f"| setting_{n} | {n} | changes part {n} of the service |" for n in range(60)]
    rows[41] = "| worker_timeout | 30 | ends a worker that is silent for so many seconds |"
    hit = make_hit("https://d.test/s#s", "\n".join(["The service has these settings:\n", *HEAD, *rows]), ("Settings",))
    assert rows_of(answer("What is the timeout of a worker?", hit)) == [*HEAD, GAP, rows[41], GAP]


@pytest.mark.parametrize(("most", "first"), [(0.25, 7), (0.15, 0)])
def test_row_with_few_words_of_a_long_question_can_be_relevant(most: float, first: int) -> None:
    rows = [f"| {n} | part {n} of all |" for n in range(20)]
    [table] = split_passages("\n".join([*HEAD, *rows]))
    kept = rows_of(bound(table, {"7": most, "missing": 1 - most}).text)
    assert next(row for row in kept[2:] if row != GAP) == rows[first]


@pytest.mark.parametrize(("many", "kept", "end"), [(20, MOST_ROWS, [GAP]), (10, 10, [])])
def test_table_asked_about_as_a_whole_is_quoted_from_its_start(many: int, kept: int, end: list[str]) -> None:
    rows = [f"| disk {n} | free space of disk {n} |" for n in range(many)]
    head = ["| check | what it looks for |", "| --- | --- |"]
    text = "\n".join(["The command doctor makes these checks:\n", *head, *rows])
    made = answer("What does the command doctor check?", make_hit("https://d.test/d#d", text, ("Doctor",)))
    assert rows_of(made) == [*head, *rows[:kept], *end]


def test_long_list_is_quoted_as_its_relevant_items_with_all_lines() -> None:
    items = [f"- option {n} is for case {n} of the program" for n in range(30)]
    items[17] = "- verbose prints each file that is copied\n    - and its size in bytes"
    hit = make_hit("https://d.test/o#o", "\n".join(["The program takes options:\n", *items]), ("Options",))
    made = answer("How do I have the program print each copied file?", hit)
    assert items[17].removeprefix("- ") in made and made.count("- option") == 0


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("our repo has submodules, can we use the tool with a git repo?", "- Submodules: no, they do not show up."),
        ("is a shallow clone of a git repo fine for use with the tool?", "- Shallow clones: only for reading."),
        ("will the tool run the hooks of a git repo?", "- Hooks: they are not run."),
    ],
)
def test_item_with_a_unique_word_beats_a_long_item_with_many_common_ones(asked: str, meant: str) -> None:
    long = "the tool reads it from the git repo, and you use it in the repo with the tool as you use git itself"
    names = ["Submodules", "Ignored files", "Staging", "Tags", "Notes", "Remotes", "Worktrees", "Attributes", "Bundles"]
    items = [f"- {name}: yes, {long}." for name in names[1:]]
    items += [
        "- Submodules: no, they do not show up.",
        "- Shallow clones: only for reading.",
        "- Hooks: they are not run.",
    ]
    about = make_hit("https://d.test/a#a", "Git submodules, shallow clones and hooks are hard. " * 3, ("Design",))
    hit = make_hit("https://d.test/g#g", "\n".join(["Git features:\n", *items]), ("Git support",))
    made = answer(asked, about, hit, *[replace(about, chunk_id=f"x{n}", url=f"https://d.test/x{n}") for n in range(3)])
    assert meant in made


@pytest.mark.parametrize(("lines", "whole"), [(MOST_CODE_LINES, True), (MOST_CODE_LINES + 9, False)])
def test_code_is_quoted_whole_unless_very_long(lines: int, whole: bool) -> None:
    code = "\n".join(f"step_{n}(table[{n}])" for n in range(lines))
    text = f"To fill the table, run all of its steps:\n\n```python\n{code}\n```"
    made = answer("How do I fill the table?", make_hit("https://d.test/c#c", text, ("Fill",)))
    assert (code in made, "…\n```" not in made) == (whole, whole) and made.count("\n") < MOST_CODE_LINES + 9


TABLE, CODE = "| a | b |\n| --- | --- |\n| one | two |", "```\nrun it\n```"
NOTE = "> Note\n>\n> | a | b |\n> | --- | --- |\n> | one | two |"


@pytest.mark.parametrize(("text", "end"), [
    (f"It runs.\n\n{CODE}", f"It runs. [1]\n\n{CODE}"),
    (f"Run this:\n\n{CODE}", f"Run this:\n\n{CODE}\n\n[1]"),
    (f"It has these:\n\n{TABLE}", f"It has these:\n\n{TABLE}\n\n[1]"),
    ("It has these:\n\n- one\n- two", "It has these:\n\n- one\n- two [1]"),
    (f"Run it.\n\n{NOTE}", f"Run it. [1]\n\n{NOTE}"),
])  # fmt: skip
def test_citation_follows_the_last_sentence_and_the_block_it_introduces(text: str, end: str) -> None:
    [hit] = [make_hit("https://d.test/r#run", text, ("Run",))]
    passages = tuple(split_passages(text))
    assert write([Quote(0, passages, 1.0, 0.9, frozenset())], [hit]) == f"**Run**\n\n{end}"


def test_long_definition_ends_after_a_whole_sentence() -> None:
    body = " ".join(f"Part {n} of the registry keeps the names that begin with letter {n}." for n in range(40))
    hit = make_hit("https://d.test/d#d", f"registry:\\\n{body}", ("Glossary",))
    made = answer("What does the registry keep?", hit)
    assert len(made.split()) < MOST_PROSE_WORDS + 20 and made.rstrip(" [1]").endswith(". …")


STEPS = make_hit(
    "https://d.test/i#run",
    "Pages are indexed by one command, which reads, cuts and embeds them:\n\n```\nindex d.test --collection docs\n```",
    ("Indexing", "A run"),
)


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("How pages become sections, vectors and an index.", "Indexing"),
        ("This page describes how to index pages:", "Index pages"),
        ("This document explains how to index pages. To begin, see the guide.\n\n- Pages\n- Runs", "Index pages"),
    ],
)
def test_lead_in_and_list_of_section_titles_are_skipped(text: str, heading: str) -> None:
    hit = make_hit("https://d.test/i", text, (heading,))
    assert answer("How do I index pages?", hit, STEPS).startswith("**A run**")


def test_list_that_answers_is_not_a_table_of_contents() -> None:
    formats = make_hit("https://d.test/f", "These are the formats that are indexed:\n\n- HTML\n- PDF", ("Formats",))
    assert "- PDF" in answer("Which formats are indexed?", formats)


def test_lead_in_is_quoted_with_the_text_below_it() -> None:
    lead, versions = "This section describes how to clear the cache.", "Every entry has a version, which is a number."
    text = f"{lead}\n\n{versions}\n\nCall cache.clear() in a shell of the project. It removes all entries at once."
    made = answer("How do I clear the cache?", make_hit("https://d.test/k#k", text, ("Cache", "Clearing it")))
    assert "cache.clear()" in made


def test_passage_with_the_verb_of_the_question_is_preferred() -> None:
    cache = "The template cache keeps templates in memory. Each template of the cache is kept for a day at most."
    flush = "To clear the cache, call flush() in a shell. It takes a second, and templates are read from disk again."
    what = make_hit("https://d.test/cache", cache, ("The template cache",))
    how = make_hit("https://d.test/admin#flush", flush, ("Administration",))
    asked = "How do I clear the template cache?"
    assert answer(asked, what, how).startswith("**Administration**")
    assert answer("What is the template cache?", what, how).startswith("**The template cache**")


def supports(question: str, hit: Hit) -> list[float]:
    return [quote.support for quote in extract(question, hit)[2].quotes or ()]


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("cache.clear()", "cache.clear"),
        ("\uf17c / \uf17a\n\n\u25b8", "Clear the cache"),
        ("Version three was released in spring. It needs as much memory as it did before.", "Clear the cache"),
    ],
    ids=["a signature", "glyphs", "text of something else"],
)
def test_heading_alone_supports_nothing(text: str, heading: str) -> None:
    assert not any(supports("How do I clear the cache?", make_hit("https://d.test/c", text, ("Cache", heading))))


def test_sentences_that_send_readers_elsewhere_do_not_count() -> None:
    told = "Filters change how a value is shown, and there are many of them. They stand behind a bar."
    sends = f"{told} For information on how to write custom filters, see Custom filters."
    says = f"{told} To write custom filters, put a function into a module and register it."
    hits = [make_hit("https://d.test/t", text, ("Templates", "Filters")) for text in (sends, says)]
    less, more = (supports("How do I write custom filters?", hit) for hit in hits)
    assert less < more


def places(text: str, *chosen: int, after: int = 0, below: str = "") -> list[int]:
    """Return the indices of the passages in a filled quote of the `chosen` ones, `after` so many similar ones."""
    hit = replace(make_hit("https://d.test/f#f", text, ("Disks",)), below=below)
    section = split_passages(hit.passage)
    quote = Quote(0, tuple(section[n] for n in chosen), 1.0, 0.5, frozenset())
    return [passage.place for passage in fill([quote] * (after + 1), [hit])[-1].passages]


def test_gaps_of_a_quote_are_filled_as_space_allows() -> None:
    text = "\n\n".join(f"Disk {n} is one of the others. " * 5 for n in range(10))  # 35 words each
    assert places(text, 1, 3) == [1, 2, 3, 4, 5, 6, 7] and 7 * 35 < FULL < 8 * 35
    assert places(text, 1, after=1) == [1], "the best one has all of the room"
    assert places(text, 0, 8) == [0, 1, 2, 3, 4, 5, 8], "what does not fit stays out"
    short = "\n\n".join(text.split("\n\n")[:4])
    assert places(short, 2) == [0, 1, 2, 3], "a section that fits is quoted whole"
    assert places(short, 2, after=1) == [2, 3], "the second one has what is left"


def test_quote_is_not_filled_with_dangling_labels_or_other_definitions() -> None:
    text = "Disk one is one of the others. " * 5
    assert places(f"{text}\n\nWhat is slow?\n\n{'Disks are. ' * 5}", 0) == [0, 1, 2]
    assert places(f"{text}\n\nWhat is slow?\n\n{'disks ' * 300}.", 0) == [0]
    assert places(f"{text}\n\n**size**\n\n: of a disk\n\n{'disks ' * 300}.", 0) == [0]


def test_aside_is_quoted_between_two_passages_but_not_at_the_end() -> None:
    aside = f"See the readme. {'If one of them is logged, it stays so. ' * 4}"
    said = "Disk one is one of the others. " * 5
    text = "\n\n".join([said, aside, said, aside])
    assert places(text, 0) == places(f"{text}\n\n{'disks ' * 300}.", 0) == [0, 1, 2]


def test_short_complete_section_is_followed_by_its_subsections() -> None:
    text, below = "There are two ways.", f"**One**\n\n{'disks ' * 120}.\n\n**Two**\n\n{'disks ' * 130}."
    assert places(text, 0, below=below) == [0, 1], "the heading of what has no room is left out"
    asked = below.replace("**Two**", "**Two?**")
    assert places(text, 0, below=asked) == [0, 1], "so is one that is a question"
    assert places(text, 0, after=1, below=below) == [0]
    assert places(f"{'disks ' * 101}.", 0, below=below) == [0], "a long section is an answer itself"
