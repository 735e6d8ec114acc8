"""Folders, files, functions and class names stay within their limits."""

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest
from test_architecture import CODE, ROOT, files, name_of, tree_of

# What is added to them is a file of its own each time: a verb of `raydex`, a generator, a format, a kind of model.
GROWING = {
    "jobs", "pipelines/indexing/reading/formats", "pipelines/indexing/reading/generators", "pipelines/training",
}  # fmt: skip
# Compiled patterns: phrases belong into data files, Markdown and HTML to their parsers. Lower a ceiling once you can.
PATTERN_CEILINGS = {
    "pipelines/answering": 58, "pipelines/evaluation": 7, "pipelines/indexing": 72, "pipelines/insights": 0,
    "pipelines/lexical": 4, "pipelines/llm": 6, "pipelines/markdown": 5, "pipelines/store": 2, "pipelines/text": 8,
    "pipelines/training": 0, "serve": 20, "jobs": 0,
}  # fmt: skip

SOURCES = files(*CODE)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """The functions, classes and calls of all files, each with its file."""
    found = [(path, node) for path in SOURCES for node in ast.walk(tree_of(path))]
    return [(path, node) for path, node in found if isinstance(node, Function | ast.ClassDef | ast.Call)]


def folder_sizes() -> dict[str, int]:
    return Counter(folder for path in SOURCES if (folder := name_of(path.parent)) not in GROWING)


def file_sizes() -> dict[str, int]:
    return {name_of(path): len(path.read_text().splitlines()) for path in SOURCES}


def parameter_counts() -> dict[str, int]:
    """Count the parameters of each function, without self and cls, by `file:function`; of equal names the most."""
    counts: dict[str, int] = {}
    for path, node in nodes():
        if isinstance(node, Function):
            name = f"{name_of(path)}:{node.name}"
            counts[name] = max(parameters_of(node), counts.get(name, 0))
    return counts


def parameters_of(function: Function) -> int:
    arguments = function.args
    named = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")])


@pytest.mark.parametrize(
    ("sizes", "limit"),
    [
        pytest.param(folder_sizes, 12, id="files in a folder"),
        pytest.param(file_sizes, 400, id="lines in a file"),
        pytest.param(parameter_counts, 8, id="parameters of a function"),
    ],
)
def test_nothing_is_larger_than_its_limit(sizes, limit):
    assert {name: size for name, size in sizes().items() if size > limit} == {}


def test_a_part_compiles_no_more_patterns_than_it_did():
    counts: Counter[str] = Counter()
    for path, node in nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "compile":
            within = path.relative_to(ROOT).parts
            part = "/".join(within[: 2 if within[0] == "pipelines" else 1])
            counts[part] += ast.unparse(node.func) in ("re.compile", "regex.compile")
    assert {part: count for part, count in counts.items() if count > PATTERN_CEILINGS.get(part, 0)} == {}


def test_a_class_name_has_one_meaning():
    names = Counter(node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == set()


def test_no_module_name_is_used_four_times():
    names = Counter(path.name for path in SOURCES)
    assert {name: n for name, n in names.items() if n > 3 and not name.startswith("__")} == {}
