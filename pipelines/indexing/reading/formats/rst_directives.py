"""Accepts directives and roles of any docutils extension: none causes an error or loses its text.

No directive reads a file. An unknown directive becomes its argument and its content, an unknown role its words.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.states import SubstitutionDef
from docutils.utils import unescape

from pipelines.indexing.reading.formats.sphinx_markup import (
    OWN_DIRECTIVES,
    SERIES,
    DirectiveKind,
    box_title,
    change_note,
    directive_kind,
    role_title,
    series_link,
    shown_role,
)

LABEL = "raydex-label"  # the attribute of a reference that still needs the title of its target


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
        kind = directive_kind(name, argument)
        if isinstance(self.state, SubstitutionDef):  # it must not be empty: `.. |br| raw:: html`
            return [nodes.Text(" " if kind == "silent" else argument or " ".join(self.content))]
        return self._shown(name, kind, argument)

    def _shown(self, name: str, kind: DirectiveKind, argument: str) -> list[nodes.Node]:
        if kind == "silent":
            return self._paragraph(self.options.get("synopsis", ""))
        if kind == "code":
            lines = list(self.content) or argument.split("\n") * (name in ("productionlist", "plot"))
            return [
                *self._paragraph(self.options.get("caption", "")),
                *_code(lines, argument if name.startswith(("code", "source")) else ""),
            ]
        content = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, content)
        if kind == "change":
            return [*self._paragraph(change_note(name, argument)), *content.children]
        if kind == "box":
            return [nodes.admonition("", *_bold(box_title(name)), *self._paragraph(argument), *content.children)]
        if kind == "object":
            return [*_code(line.strip() for line in argument.split("\n")), *content.children]
        # `.. setting:: name` above a heading is only a target for references.
        refers = not self.content and not self.options and len(argument.split()) == 1
        return [*(() if refers or kind == "untitled" else _bold(argument)), *content.children]

    def _paragraph(self, text: str) -> list[nodes.Node]:
        """Return `text`, with its inline markup, as a paragraph."""
        inline, messages = self.state.inline_text(text, self.lineno)
        return [nodes.paragraph(text, "", *inline), *messages] if text else []


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
    words = unescape(text)
    if name.lower().rpartition(":")[2] == "ref" and role_title(words.strip()) is None:
        return [nodes.inline("", words.strip(), **{LABEL: words.strip().lstrip("!")})], []
    shown, is_code = shown_role(name, words)
    if url := series_link(name, words):
        return [nodes.reference("", shown, refuri=url)], []
    return [nodes.literal("", shown) if is_code else nodes.inline("", shown)], []


@contextmanager
def understand_all() -> Iterator[None]:
    """Let docutils accept any directive and role in this context, by replacing its lookup functions."""
    own_directive, own_role = directives.directive, roles.role

    def find_directive(directive_name: str, language_module: Any, document: Any) -> tuple[type[Directive], list[Any]]:
        known = directive_name.lower() not in OWN_DIRECTIVES
        found = own_directive(directive_name, language_module, document)[0] if known else None
        return (_lenient(found) if found else AnyDirective), []

    def find_role(role_name: str, language_module: Any, lineno: int, reporter: Any) -> tuple[Any, list[Any]]:
        own = None if role_name.lower() in SERIES else own_role(role_name, language_module, lineno, reporter)[0]
        return own or read_role, []

    directives.directive, roles.role = find_directive, find_role
    try:
        yield
    finally:
        directives.directive, roles.role = own_directive, own_role


def _lenient(known: type[Directive]) -> type[Directive]:
    """Return a docutils directive that ignores the options of extensions."""
    return type(known.__name__, (known,), {"option_spec": AnyOptions(known.option_spec or {})})
