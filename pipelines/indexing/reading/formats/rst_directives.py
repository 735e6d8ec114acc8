"""Accepts directives and roles of any docutils extension: none causes an error or loses its text.

No directive reads a file. An unknown directive becomes its argument and its content, an unknown role its words.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.utils import unescape

from pipelines.text.phrases import read_names, read_table

LABEL = "raydex-label"  # the attribute of a reference that still needs the title of its target


_NAMES, _TABLE = read_names(__name__), read_table(__name__)
_CHANGES: dict[str, str] = _TABLE["changes"]
_BOXES: dict[str, str] = _TABLE["boxes"]
# Docutils knows some of these names.
_OWN = frozenset((*_CHANGES, *_BOXES)).union(*(_NAMES[kind] for kind in ("silent", "code", "objects", "untitled")))

_TITLED = re.compile(r"(?P<title>.*?\S)\s*+<(?P<target>[^<>]++)>", re.DOTALL)


class AnyOptions(dict[str, Any]):
    """Accepts every option: known ones as the directive parses them, others as strings."""

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class AnyDirective(Directive):
    """A directive that takes any argument, options and content."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[Any] = AnyOptions()

    def run(self) -> list[nodes.Node]:
        name, argument = self.name.lower(), "".join(self.arguments).strip()
        if not _NAMES["silent"].isdisjoint((name, f"{name}:{argument}")):
            return self._paragraph(self.options.get("synopsis", ""))
        if name in _NAMES["code"]:
            lines = list(self.content) or argument.split("\n") * (name in ("productionlist", "plot"))
            return [
                *self._paragraph(self.options.get("caption", "")),
                *_code(lines, argument if name.startswith(("code", "source")) else ""),
            ]
        content = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, content)
        if name in _CHANGES:
            return [*self._paragraph(_change(name, argument)), *content.children]
        if name in _BOXES:
            return [nodes.admonition("", *_bold(_BOXES[name]), *self._paragraph(argument), *content.children)]
        if ":" in name or name.startswith("auto") or name in _NAMES["objects"]:
            return [*_code(line.strip() for line in argument.split("\n")), *content.children]
        # `.. setting:: name` above a heading is only a target for references.
        refers = not self.content and not self.options and len(argument.split()) == 1
        return [*(() if refers or name in _NAMES["untitled"] else _bold(argument)), *content.children]

    def _paragraph(self, text: str) -> list[nodes.Node]:
        """Return `text`, with its inline markup, as a paragraph."""
        inline, messages = self.state.inline_text(text, self.lineno)
        return [nodes.paragraph(text, "", *inline), *messages] if text else []


def _change(name: str, argument: str) -> str:
    """Return a version note: "Added in version 3.2: text"."""
    version, *text = argument.split(None, 1) or [""]
    if name == "deprecated-removed" and text:
        removed, *text = text[0].split(None, 1)
        version = f"{version}, will be removed in version {removed}"
    return ": ".join([f"{_CHANGES[name]} {version}", *text])


def _bold(words: str) -> list[nodes.Node]:
    return [nodes.paragraph("", "", nodes.strong("", words))] if words else []


def _code(lines: Iterator[str] | list[str], language: str = "") -> list[nodes.Node]:
    # Readers of the class take the part after its last "-" as the language.
    text, named = "\n".join(lines), language and "-" not in language
    return [nodes.literal_block(text, text, classes=[f"highlight-{language}"] if named else [])] if text else []


def read_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return the words of any role: its title, or else its target as the published page shows it."""
    role, words = name.lower().rpartition(":")[2], unescape(text).strip().lstrip("!")
    titled = _TITLED.fullmatch(words)
    shown = titled["title"] if titled else words
    if role == "ref" and not titled:
        return [nodes.inline("", shown, **{LABEL: words})], []
    if role in _NAMES["prose"]:
        return [nodes.inline("", shown.replace("-->", "→"))], []
    if role in ("samp", "file"):
        return [nodes.literal("", shown.replace("{", "").replace("}", ""))], []
    shown = shown[1:].rpartition(".")[2] if shown.startswith("~") else shown if titled else shown.lstrip(".")
    called = role in _NAMES["called"] and not titled and not shown.endswith(")")
    return [nodes.literal("", f"{shown}()" if called else shown)], []


@contextmanager
def understand_all() -> Iterator[None]:
    """Let docutils accept any directive and role in this context, by replacing its lookup functions."""
    own_directive, own_role = directives.directive, roles.role

    def find_directive(directive_name: str, language_module: Any, document: Any) -> tuple[type[Directive], list[Any]]:
        known = directive_name.lower() not in _OWN
        found = own_directive(directive_name, language_module, document)[0] if known else None
        return (_lenient(found) if found else AnyDirective), []

    def find_role(role_name: str, language_module: Any, lineno: int, reporter: Any) -> tuple[Any, list[Any]]:
        return own_role(role_name, language_module, lineno, reporter)[0] or read_role, []

    directives.directive, roles.role = find_directive, find_role
    try:
        yield
    finally:
        directives.directive, roles.role = own_directive, own_role


def _lenient(known: type[Directive]) -> type[Directive]:
    """Return a docutils directive that ignores the options of extensions."""
    return type(known.__name__, (known,), {"option_spec": AnyOptions(known.option_spec or {})})
