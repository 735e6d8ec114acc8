"""Draws the tree of the repository from the first lines of its files.

    python docs/tree.py            print every file of the source with its first line
    python docs/tree.py --write    replace the tree in docs/architecture.md

The page has one line for each folder and each single file; a test compares both directions.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ("pipelines", "serve", "jobs")
# Folders without a package that could describe them.
OTHERS = {
    "collections": "Collection files: what to crawl and how to index it.",
    "deploy": "Image, Helm chart, systemd units, starting clusters and models, announcing changes, alerts, dashboards.",
    "benchmarks": "One measured claim a file, `make bench` runs them; sweeps and results of experiments.",
    "examples": "Five short scripts that mirror published guides: index, query agent, fusion, synthesis, evaluation.",
    "docs": "The documentation, which the demo indexes; decisions and their reasons.",
    "tests": "kit (shared), unit (no database), integration, acceptance (as a user), cluster (several nodes).",
}
DESCRIPTION_COLUMN, WIDTH = 26, 119
BEGIN, END = "<!-- tree: written by `make tree` -->\n```\n", "```\n<!-- end of tree -->"


def first_line(path: Path) -> str:
    """The first line of a module's docstring, "" if it has none."""
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


def modules(folder: Path) -> list[Path]:
    """The modules of a folder, without `__init__`, by name."""
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def packages(folder: Path) -> list[Path]:
    """The folders below that hold modules, by name."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py")))


def described(folder: Path) -> str:
    """What a folder holds: the first line of its `__init__`."""
    init = folder / "__init__.py"
    return first_line(init) if init.exists() else OTHERS[folder.name]


def line(depth: int, name: str, text: str) -> str:
    indented = "  " * depth + name
    return f"{indented:<{DESCRIPTION_COLUMN - 1}} {text}".rstrip()


def names_of(folder: Path, depth: int) -> Iterator[str]:
    """The modules of a folder, several on a line."""
    indent, row = "  " * depth, ""
    for path in modules(folder):
        if row and len(f"{indent}{row} {path.name}") > WIDTH:
            yield indent + row
            row = ""
        row = f"{row} {path.name}".strip()
    if row:
        yield indent + row


def short_tree() -> str:
    """The tree for the page: a line for each folder, and one for each module that stands beside folders."""
    lines = []
    for name in SOURCE:
        top = ROOT / name
        lines.append(line(0, f"{name}/", described(top)))
        if name == "pipelines":
            lines += [line(1, path.name, first_line(path)) for path in modules(top)]
        else:
            lines += names_of(top, 1)
        lines += list(_folders(top, 1))
    lines += [line(0, f"{name}/", OTHERS[name]) for name in OTHERS]
    return "\n".join(lines) + "\n"


def _folders(folder: Path, depth: int) -> Iterator[str]:
    for below in packages(folder):
        yield line(depth, f"{below.name}/", described(below))
        yield from names_of(below, depth + 1)
        yield from _folders(below, depth + 1)


def long_tree() -> str:
    """Every module with its first line."""
    lines = []
    for name in SOURCE:
        for path in sorted((ROOT / name).rglob("*.py")):
            lines.append(f"{path.relative_to(ROOT).as_posix():<58} {first_line(path)}")
    return "\n".join(lines) + "\n"


def in_page(text: str, tree: str) -> str:
    """`text` of the page with its tree replaced. Raises ValueError if it marks no place for the tree."""
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{PAGE} has no place for the tree: put {BEGIN!r} and {END!r} where it belongs")
    return pattern.sub(lambda _: BEGIN + tree + END, text)


def main() -> None:
    if "--write" not in sys.argv:
        print(long_tree(), end="")
        return
    PAGE.write_text(in_page(PAGE.read_text("utf-8"), short_tree()), "utf-8")


if __name__ == "__main__":
    main()
