"""A name means one thing."""

import ast
from collections import Counter

from test_architecture import CODE, ROOT, files, tree_of


def test_a_class_name_has_one_meaning():
    names = Counter(
        node.name for path in files(*CODE) for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)
    )
    twice = {name for name, count in names.items() if count > 1}
    assert not twice, f"rename all but one of these classes: {twice}"


def test_a_test_file_has_a_name_of_its_own():
    """Pytest imports two files of one name as one module, and each worker collects another of them."""
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []
