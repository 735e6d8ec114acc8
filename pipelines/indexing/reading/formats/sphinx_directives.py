"""The directives of Sphinx for docutils: none is an error, none loses its text, none reads a file.

A directive that is not known is read as its argument and its content.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles

from pipelines.indexing.reading.formats.sphinx_objects import (
    C_KINDS,
    PYTHON_KINDS,
    AnyOptions,
    CObject,
    Description,
    Module,
    Option,
    Program,
    PythonObject,
    SphinxDirective,
    anchor_of,
    names,
)
from pipelines.indexing.reading.formats.sphinx_roles import read_role

# What a reader of the published page doesn't see, and what would read another file.
_SILENT = names(
    "index highlight highlightlang sectionauthor moduleauthor codeauthor default-domain default-role tabularcolumns "
    "testsetup testcleanup include literalinclude raw graphviz digraph graph mermaid uml inheritance-diagram meta "
    "sidebar-links contents sectnum include-code"
)
_CODE = names(
    "code code-block sourcecode highlight-block doctest testcode testoutput ipython prompt productionlist plot "
    "jupyter-execute code-cell cell parsed-code terminal console"
)
_CHANGES = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version",
    "versionremoved": "Removed in version",
}
_BOXES = {"seealso": "See also", "todo": "Todo", "impl-detail": "Implementation detail"}


class Silent(SphinxDirective):
    """Shows nothing."""

    def run(self) -> list[nodes.Node]:
        return []


class Anything(SphinxDirective):
    """Shows the argument in bold type and the content: tabs, cards, columns, and whatever is not known."""

    def run(self) -> list[nodes.Node]:
        title = [nodes.paragraph("", "", nodes.strong("", self.argument))] if self.argument else []
        return [*title, *self.parsed()]


class Condition(SphinxDirective):
    """Shows the content, whatever the condition."""

    def run(self) -> list[nodes.Node]:
        return self.parsed()


class CodeBlock(SphinxDirective):
    """Shows the content as code, under its caption."""

    def run(self) -> list[nodes.Node]:
        lines = list(self.content)
        if not lines and self.name in ("productionlist", "plot"):
            lines = self.argument.split("\n")
        text = "\n".join(lines)
        caption = self.paragraph(self.options.get("caption", ""))
        return [*caption, nodes.literal_block(text, text)] if text else caption


class VersionChange(SphinxDirective):
    """Shows "Added in version 3.2:" before the text."""

    def run(self) -> list[nodes.Node]:
        version, text = _first_word(self.argument)
        if self.name == "deprecated-removed":
            removed, text = _first_word(text)
            version = f"{version}, will be removed in version {removed}"
        lead = f"{_CHANGES[self.name]} {version}"
        content = self.parsed()
        first = content[0] if content and not text else None
        if isinstance(first, nodes.paragraph):
            first.insert(0, nodes.Text(f"{lead}: "))
            return content
        return [*self.paragraph(text, nodes.Text(f"{lead}: " if text else lead)), *content]


class Box(SphinxDirective):
    """Shows the content as an admonition."""

    def run(self) -> list[nodes.Node]:
        title = nodes.paragraph("", "", nodes.strong("", _BOXES[self.name]))
        return [nodes.admonition("", title, *self.paragraph(self.argument), *self.parsed())]


class Toctree(SphinxDirective):
    """Shows the titles of subpages, marked as a table of contents."""

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        entries = [line.strip() for line in self.content if line.strip() and "*" not in line]
        items = nodes.bullet_list()
        for entry in entries:
            titled = re.match(r"(.+?)\s*<([^<>]*)>$", entry)
            link = nodes.reference("", titled[1] if titled else entry, refuri=titled[2] if titled else entry)
            items += nodes.list_item("", nodes.paragraph("", "", link))
        return [nodes.container("", items, classes=["toctree-wrapper"])] if entries else []


class Autosummary(SphinxDirective):
    """Shows the names in the list."""

    def run(self) -> list[nodes.Node]:
        names = [line.strip().lstrip("~") for line in self.content if line.strip()]
        items = [nodes.list_item("", nodes.paragraph("", "", nodes.literal("", name))) for name in names]
        return [nodes.bullet_list("", *items)] if items else []


class Glossary(SphinxDirective):
    """Shows the terms with the anchors of Sphinx."""

    def run(self) -> list[nodes.Node]:
        found = self.parsed()
        for term in (term for node in found for term in node.findall(nodes.term)):
            term["ids"].append(anchor_of(f"term-{term.astext()}"))
        return found


def _first_word(text: str) -> tuple[str, str]:
    first, *rest = text.split(None, 1) or [""]
    return first, "".join(rest)


_KNOWN: dict[str, type[Directive]] = {
    **dict.fromkeys(_SILENT, Silent),
    **dict.fromkeys(_CODE, CodeBlock),
    **dict.fromkeys(_CHANGES, VersionChange),
    **dict.fromkeys(_BOXES, Box),
    **dict.fromkeys(("only", "ifconfig", "hlist", "centered", "acks", "container", "tab-set", "grid"), Condition),
    **dict.fromkeys(PYTHON_KINDS, PythonObject),
    **{f"py:{name}": PythonObject for name in PYTHON_KINDS},
    **{f"auto{name}": PythonObject for name in PYTHON_KINDS},
    **dict.fromkeys(("module", "py:module", "currentmodule", "py:currentmodule"), Module),
    **{f"c:{name}": CObject for name in C_KINDS},
    **dict.fromkeys(("cfunction", "cmacro", "ctype", "cvar", "cmember"), CObject),
    **dict.fromkeys(("option", "cmdoption", "program-option"), Option),
    **dict.fromkeys(("envvar", "describe", "object", "opcode", "confval", "rst:directive", "rst:role"), Description),
    "autosummary": Autosummary,
    "centered": Anything,
    "glossary": Glossary,
    "program": Program,
    "toctree": Toctree,
}


@contextmanager
def understand_sphinx() -> Iterator[None]:
    """Let docutils read the directives and roles of Sphinx while the body runs, as Sphinx itself does it."""
    own_directive, own_role = directives.directive, roles.role

    def find_directive(name: str, *place: Any) -> tuple[type[Directive], list[Any]]:
        if name.lower() in _KNOWN:
            return _KNOWN[name.lower()], []
        found, _ = own_directive(name, *place)
        return (_lenient(found) if found else Anything), []

    def find_role(name: str, language: Any, lineno: int, reporter: Any) -> tuple[Any, list[Any]]:
        found, _ = own_role(name, language, lineno, reporter)
        return found or read_role, []

    directives.directive, roles.role = find_directive, find_role
    try:
        yield
    finally:
        directives.directive, roles.role = own_directive, own_role


def _lenient(known: type[Directive]) -> type[Directive]:
    """Return a directive of docutils that ignores the options that Sphinx adds."""
    return type(known.__name__, (known,), {"option_spec": AnyOptions(known.option_spec or {})})
