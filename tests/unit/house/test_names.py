"""Class names and test files are unique, and the names of tests are short."""

import ast
from collections import Counter

from test_architecture import CODE, ROOT, files, tree_of

LONGEST_NAME = 70  # characters; a longer name describes more than one thing


def test_class_names_are_unique():
    names = Counter(
        node.name for path in files(*CODE) for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)
    )
    twice = {name for name, count in names.items() if count > 1}
    assert not twice, f"rename all but one of these classes: {twice}"


def test_test_files_have_unique_names():
    """Pytest imports two files with the same name as one module, and each worker may collect a different one."""
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []


def test_names_of_tests_are_at_most_70_characters_long():
    names = {
        node.name
        for path in files("tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert sorted(name for name in names if len(name) > LONGEST_NAME) == []
