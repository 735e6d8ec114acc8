"""Folders, files, functions and class names stay within their limits."""

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest
from test_architecture import CODE, ROOT, files, imports, name_of, tree_of

# What is added to them is a file of its own each time: a verb of `raydex`, an embedding backend, a format, a generator,
# a kind of trained model.
GROWING = {
    "jobs", "pipelines/embedding", "pipelines/indexing/reading/formats", "pipelines/indexing/reading/generators",
    "pipelines/training",
}  # fmt: skip
# Compiled patterns: phrases belong into data files, Markdown and HTML to their parsers. Lower a ceiling once you can.
PATTERN_CEILINGS = {
    "pipelines/answering": 58, "pipelines/evaluation": 7, "pipelines/indexing": 72, "pipelines/insights": 0,
    "pipelines/lexical": 4, "pipelines/llm": 7, "pipelines/markdown": 5, "pipelines/store": 2, "pipelines/text": 8,
    "pipelines/training": 0, "serve": 20, "jobs": 0,
}  # fmt: skip
# Every chat platform has them in its folder, so there they count as one name.
PLATFORM_FILES = {"settings.py", "bot.py", "channel.py"}

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
    ("sizes", "limit", "remedy"),
    [
        pytest.param(folder_sizes, 12, "move modules of one kind into a folder of their own", id="files in a folder"),
        pytest.param(file_sizes, 400, "move what is of one kind into a file of its own", id="lines in a file"),
        pytest.param(parameter_counts, 8, "pass an object that has what goes together", id="parameters of a function"),
    ],
)
def test_nothing_is_larger_than_its_limit(sizes, limit, remedy):
    larger = {name: size for name, size in sizes().items() if size > limit}
    assert not larger, f"more than {limit}, {remedy}: {larger}"


def test_a_part_compiles_no_more_patterns_than_it_did():
    counts: Counter[str] = Counter()
    for path, node in nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "compile":
            within = path.relative_to(ROOT).parts
            part = "/".join(within[: 2 if within[0] == "pipelines" else 1])
            counts[part] += ast.unparse(node.func) in ("re.compile", "regex.compile")
    over = {part: count for part, count in counts.items() if count > PATTERN_CEILINGS.get(part, 0)}
    assert not over, (
        "more compiled patterns than PATTERN_CEILINGS has: put phrases into a YAML table (pipelines/text/phrases.py), "
        f"leave Markdown and HTML to their parsers, else raise the ceiling there and say why in the commit: {over}"
    )


def test_a_class_name_has_one_meaning():
    names = Counter(node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    twice = {name for name, count in names.items() if count > 1}
    assert not twice, f"rename all but one of these classes: {twice}"


def test_no_module_name_is_used_four_times():
    names = Counter(path.name for path in SOURCES if not (path.name in PLATFORM_FILES and is_of_platform(path)))
    often = {name: n for name, n in names.items() if n > 3 and not name.startswith("__")}
    assert not often, f"give the new one a name that says more (PLATFORM_FILES: name the platform in bots.py): {often}"


def is_of_platform(path: Path) -> bool:
    """Return whether a file is one of a chat platform: those that serve/bots.py imports, without what they share."""
    used = {".".join(module.split(".")[:2]) for module in imports(ROOT / "serve" / "bots.py")}
    return name_of(path.parent).replace("/", ".") in used - {"serve.chat"}


def test_the_files_of_chat_platforms_are_known():
    of_platforms = {name_of(path) for path in SOURCES if path.name in PLATFORM_FILES and is_of_platform(path)}
    assert of_platforms >= {f"serve/slack/{name}" for name in PLATFORM_FILES}
    assert of_platforms.isdisjoint({"serve/settings.py", "serve/chat/bot.py", "serve/chat/channel.py"})
