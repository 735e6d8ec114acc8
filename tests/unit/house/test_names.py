"""Class names and test files are unique, the names of tests are short, and those of files are plain."""

import ast
import re
import shutil
import subprocess
from collections import Counter

import pytest
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


def test_tracked_files_have_plain_names():
    """A slip of a shell leaves files with stars, quotes or spaces in their names."""
    git = shutil.which("git")
    listed = (
        subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False) if git else None
    )
    if listed is None or listed.returncode:
        pytest.skip("git lists no files here: not a checkout, or another account's")
    assert [name for name in listed.stdout.split("\0") if not re.fullmatch(r"[\w.+/-]*", name, re.ASCII)] == []
