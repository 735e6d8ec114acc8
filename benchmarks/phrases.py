"""Measures the benefit of each phrase table: a benchmark with the table and without it.

    RAYDEX_DATA=DIR python -m benchmarks.phrases

Prints a line per table: right and mistaken results with it and without it. Users' questions (`eval-dev.jsonl`,
`routing-dataset-train.jsonl`) must not match any of these. Calls no model and no index.
"""

import importlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import yaml

from benchmarks.common import data
from pipelines.answering.conversation import background, followup, open_page, smalltalk
from pipelines.answering.verified import similarity
from pipelines.answering.writing import claims
from pipelines.answering.writing.stages.text import Statement, read_text
from pipelines.records import Message
from pipelines.store import Place
from pipelines.text import detection
from pipelines.text.phrases import read_table

CLIENT_TASKS = Path(__file__).parents[1] / "tests" / "data" / "background_tasks.yaml"
ROLES = ("system", "user")
SETS = Path(__file__).parent / "questions"
PLACE = Place("https://d.test/load", "4.2. Loading Data", heading="read_csv")
NEVER = re.compile(r"(?!)")

Score = tuple[int, int]  # right, mistaken
Rows = Sequence[dict[str, Any]]


def rows_of(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def edited(module: ModuleType, edit: Callable[[dict[str, Any]], object]) -> Iterator[None]:
    """Load a module with changed tables."""

    def read(name: str) -> dict[str, Any]:
        tables = read_table(name)
        edit(tables)
        return tables

    with patch("pipelines.text.phrases.read_table", read):
        importlib.reload(module)
    yield
    importlib.reload(module)


@contextmanager
def replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    with patch.object(module, name, value):
        yield


def unmatched(module: ModuleType, phrase: str) -> Any:
    return patch.dict(module._PHRASES, {phrase: NEVER})


def small_talk(users: Sequence[str]) -> Score:
    rows = rows_of(SETS / "small-talk.jsonl")
    taken = [smalltalk.find_smalltalk(row["message"]) is not None for row in rows]
    right = sum(found and row["smalltalk"] for found, row in zip(taken, rows, strict=True))
    return right, sum(taken) - right + sum(smalltalk.find_smalltalk(user) is not None for user in users)


def this_page(users: Sequence[str]) -> Score:
    rows = rows_of(SETS / "this-page.jsonl")
    taken = [bool(open_page.open_page(row["question"], PLACE).focus) for row in rows]
    right = sum(found and row["page"] for found, row in zip(taken, rows, strict=True))
    return right, sum(taken) - right + sum(bool(open_page.open_page(user, PLACE).focus) for user in users)


def languages(users: Sequence[str]) -> Score:
    rows = rows_of(SETS / "languages.jsonl")
    right = sum(detection.find_language(row["question"]) == row["language"] for row in rows)
    return right, sum(detection.is_foreign(user) for user in users)


def same_meaning(_: Sequence[str]) -> Score:
    def given(one: str, other: str) -> bool:
        return similarity.may_mean_same(similarity.Meaning.of(one), similarity.Meaning.of(other))

    rows = rows_of(SETS / "same-meaning.jsonl")
    return tuple(
        sum(given(row["question"], other) for row in rows for other in row[kind]) for kind in ("same", "other")
    )


def follow_ups(_: Sequence[str]) -> Score:
    """Count the completed follow-ups, and the first questions mistaken for follow-ups."""
    rows = rows_of(SETS / "followups.jsonl")
    chains = rows_of(SETS / "chains.jsonl")
    done = [followup.complete(row["question"], row["before"]) for row in chains]
    done += [followup.complete(row["question"], [row["before"]]) for row in rows]
    alone = [followup.complete(row["before"], ["How do I scale a Serve deployment?"]) for row in rows]
    return sum(bool(one.about) for one in done), sum(bool(one.about) for one in alone)


def claimed(_: Sequence[str]) -> Score:
    """Count the recognized claims in the reference answers, and the statements mistaken for claims."""
    answers = [row["answer"] for row in rows_of(data("eval-dev.jsonl"))]
    said = [piece for answer in answers for piece in read_text(answer) if isinstance(piece, Statement)]
    found = sum(claims.is_claim(one) for one in said)
    return found, len(said) - found


def background_tasks(users: Sequence[str]) -> Score:
    """Count the recognized tasks of clients, and users' questions (as follow-ups) mistaken for tasks."""
    turns = (Message("user", "How do I load a CSV file?"), Message("assistant", "Call `ray.data.read_csv`."))
    chat = "\n".join(f"{turn.role.upper()}: {turn.content}" for turn in turns)
    found = 0
    for task in yaml.safe_load(CLIENT_TASKS.read_text("utf-8")):
        texts = {role: task.get(role, "").replace("{chat}", chat).replace("{ask}", turns[0].content) for role in ROLES}
        before = turns if task.get("history") else ()
        system = [Message("system", texts["system"])] if texts["system"] else []
        found += background.find_background_task([*system, *before, Message("user", texts["user"])]) is not None
    return found, sum(background.find_background_task([*turns, Message("user", user)]) is not None for user in users)


def drop(*keys: str) -> Callable[[dict[str, Any]], object]:
    """Return an edit that empties a table at any depth."""

    def edit(tables: dict[str, Any]) -> None:
        *path, last = keys
        for key in path:
            tables = tables[key]
        tables[last] = "" if isinstance(tables[last], str) else {}

    return edit


def without_language(tag: str) -> Callable[[dict[str, Any]], object]:
    """Return an edit that removes a language's phrases from the small talk."""
    return lambda tables: [tables[kind].pop(tag) for kind in ("thanks", "goodbye", "greeting")]


def tables() -> Iterator[tuple[str, Callable[[Sequence[str]], Score], Any]]:
    """Yield each table's name, its benchmark, and a context without the table."""
    for tag in ("de", "fr", "es", "zh", "ja"):
        yield f"small talk: {tag}", small_talk, edited(smalltalk, without_language(tag))
    yield "small talk: goodbyes", small_talk, edited(smalltalk, drop("goodbye"))
    yield "small talk: fillers", small_talk, edited(smalltalk, drop("fillers"))
    yield (
        "small talk: signs",
        small_talk,
        edited(smalltalk, lambda all: all.update(signs={"greeting": "", "thanks": ""})),
    )
    yield "small talk: reasons", small_talk, unmatched(smalltalk, "reason")
    for name in ("this_page", "this_part", "there", "bare", "whole"):
        yield f"open page: {name}", this_page, unmatched(open_page, name)
    yield "open page: my …", this_page, replaced(open_page, "_MY", ())
    yield "scripts", languages, edited(detection, drop("scripts"))
    yield "similarity: opposites", same_meaning, replaced(similarity, "_OPPOSITES", [])
    yield "similarity: synonyms", same_meaning, replaced(similarity, "_SYNONYMS", [])
    yield "similarity: kinds", same_meaning, replaced(similarity, "_KINDS", {})
    yield "similarity: sides", same_meaning, replaced(similarity, "_SIDES", ())
    yield "similarity: negations", same_meaning, replaced(similarity, "_NEGATIONS", frozenset())
    yield "similarity: names", same_meaning, replaced(similarity, "_NAME", NEVER)
    yield "similarity: numbers", same_meaning, replaced(similarity, "_NUMBER", NEVER)
    yield "similarity: words that ask", same_meaning, replaced(similarity, "_ASKING", frozenset())
    yield "similarity: endings", same_meaning, replaced(similarity, "_ENDING", NEVER)
    yield "follow-ups: general words", follow_ups, replaced(followup, "_GENERAL", frozenset())
    yield "follow-ups: opposites", follow_ups, replaced(followup, "_OPPOSITES", [])
    for name in ("connector", "about", "pronoun", "otherwise", "do_this", "preposition", "definite", "at_the_end"):
        yield f"follow-ups: {name}", follow_ups, unmatched(followup, name)
    for name in ("begins", "makes", "things", "makers", "about", "formats"):
        yield f"background tasks: {name}", background_tasks, unmatched(background, name)
    yield "claims: talk", claimed, replaced(claims, "_TALK", frozenset())
    yield "claims: courtesies, lead-ins", claimed, patch.dict(claims.PHRASES, {"no_claim": NEVER})


def main() -> None:
    users = [
        row["question"] for name in ("eval-dev.jsonl", "routing-dataset-train.jsonl") for row in rows_of(data(name))
    ]
    print(f"{len(users):,} users' questions")
    print("| table | benchmark | with | without |\n|---|---|---|---|")
    for name, measure, missing in tables():
        whole = measure(users)
        with missing:
            less = measure(users)
        print(f"| {name} | {measure.__name__} | {whole[0]}, {whole[1]} | {less[0]}, {less[1]} |", flush=True)


if __name__ == "__main__":
    main()
