"""A number is followed by its noun in the right form, and no message writes the plural by itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.text.counts import counted, plural

ROOT = Path(__file__).parents[3]
VERBS = {"answers", "calls"}  # also verbs
OURS = ("pipelines", "serve", "jobs")


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (0, ["page"], "0 pages"),
        (1, ["page"], "1 page"),
        (1.0, ["day"], "1 day"),
        (1.5, ["day"], "1.5 days"),
        (90.0, ["day"], "90 days"),
        (2, ["copy"], "2 copies"),
        (2, ["index", "indexes"], "2 indexes"),
        (2_000, ["GPU"], "2,000 GPUs"),
        (1, ["answer waits", "answers wait"], "1 answer waits"),
        (12, ["answer waits", "answers wait"], "12 answers wait"),
    ],
)
def test_number_has_its_noun_in_the_right_form(number, words, said):
    assert counted(number, *words) == said


@pytest.mark.parametrize(
    ("noun", "several"),
    [("box", "boxes"), ("match", "matches"), ("day", "days"), ("entry", "entries"), ("CPU", "CPUs")],
)
def test_plural_follows_the_spelling_of_the_noun(noun, several):
    assert plural(noun) == several


def test_messages_count_things_with_counted():
    """A value before "pages", or any noun that is counted somewhere, would be wrong for the number 1."""
    trees = {path: ast.parse(path.read_text()) for part in OURS for path in sorted((ROOT / part).rglob("*.py"))}
    things = {thing for tree in trees.values() for thing in _counted(tree)}
    assert {"pages", "questions", "copies"} <= things
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path, tree in trees.items()
        for line, word in _after_values(tree)
        if word in things - VERBS
    ]
    assert not wrong, wrong


def _counted(tree: ast.AST) -> Iterator[str]:
    """Yield the plurals of the nouns that a module counts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counted" and len(node.args) == 2:
            thing = node.args[1]
            if isinstance(thing, ast.Constant):
                yield plural(thing.value.split()[-1])


def _after_values(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the word behind each value in a text, or the one after it, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    behind = re.match(r" (?!of |only |before |whose )(?:[a-z]+ )?([A-Za-z]+s)\b", str(text.value))
                    if behind:
                        yield node.lineno, behind[1]
