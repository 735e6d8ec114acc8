"""Descriptions of classes, functions and options in reStructuredText, with the anchors of Sphinx."""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList


def names(text: str) -> frozenset[str]:
    """Return the words of `text`."""
    return frozenset(text.split())


PYTHON_KINDS = names(
    "function class method attribute data exception classmethod staticmethod property decorator decoratormethod "
    "coroutinefunction coroutinemethod awaitablefunction awaitablemethod abstractmethod type"
)
_SHOWN_KINDS = names("class exception classmethod property")
_PYTHON_NAME = re.compile(r"[\w.]+")
C_KINDS = names("function type macro var member struct enum enumerator union alias")
_HOLDS_MEMBERS = names("c:type c:struct c:union c:enum")
_C_POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)")
_C_NAME = re.compile(r"([A-Za-z_][\w.]*)\s*(?:\(|\[|$|=)")
_UNLINKED = names("noindex no-index")
_UNSAFE = re.compile(r"[^a-zA-Z0-9._]+")
_NOT_AT_ENDS = re.compile(r"^[-0-9._]+|-+$")


def anchor_of(words: str) -> str:
    """Return `words` as the id that Sphinx makes of a name, which keeps capitals."""
    return _NOT_AT_ENDS.sub("", _UNSAFE.sub("-", words))


@dataclass
class Surroundings:
    """The module, classes and program that descriptions stand in; kept with the document that is being parsed."""

    module: str = ""
    program: str = ""
    classes: list[str] = field(default_factory=list)


class AnyOptions(dict[str, Any]):
    """Accepts every option: those of the directive as it reads them, others as text."""

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class SphinxDirective(Directive):  # type: ignore[misc]
    """A directive with any argument, any options and content."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[Any] = AnyOptions()

    @property
    def argument(self) -> str:
        return self.arguments[0].strip() if self.arguments else ""

    @property
    def surroundings(self) -> Surroundings:
        document = self.state.document
        if not hasattr(document, "surroundings"):
            document.surroundings = Surroundings()
        found: Surroundings = document.surroundings
        return found

    def parsed(self, content: StringList | None = None) -> list[nodes.Node]:
        """Return the content as nodes."""
        holder = nodes.Element()
        self.state.nested_parse(self.content if content is None else content, self.content_offset, holder)
        return list(holder.children)

    def paragraph(self, text: str, *before: nodes.Node) -> list[nodes.Node]:
        """Return `text`, with its own mark-up, as a paragraph after `before`."""
        inline, messages = self.state.inline_text(text, self.lineno)
        return [nodes.paragraph(text, "", *before, *inline), *messages] if text or before else []


class Module(SphinxDirective):
    """Sets the module of the descriptions that follow."""

    def run(self) -> list[nodes.Node]:
        self.surroundings.module = "" if self.argument == "None" else self.argument
        if self.name.endswith("currentmodule"):
            return []
        target = nodes.target("", "", ids=[f"module-{self.argument}"])
        self.state.document.note_explicit_target(target)
        return [target, *self.paragraph(self.options.get("synopsis", "")), *self.parsed()]


class Program(SphinxDirective):
    """Sets the program of the options that follow."""

    def run(self) -> list[nodes.Node]:
        self.surroundings.program = "" if self.argument == "None" else re.sub(r"\s+", "-", self.argument)
        return []


class Description(SphinxDirective):
    """Describes objects of a program: their signatures, each with its anchor, and the content."""

    def run(self) -> list[nodes.Node]:
        signatures = [line.strip() for line in re.sub(r"\\\n", "", self.argument).split("\n") if line.strip()]
        terms = [self.term(signature) for signature in signatures]
        definition = nodes.definition("", *self.content_nodes(signatures))
        item = nodes.definition_list_item("", *terms, definition)
        return [nodes.definition_list("", item)]

    def term(self, signature: str) -> nodes.term:
        """Return one signature with its anchor."""
        name = self.short_name(signature)
        before, _, after = signature.partition(name)
        name = self.full_name(signature)
        kind = f"{self.kind} " if self.kind in _SHOWN_KINDS else ""
        shown = [nodes.Text(kind + before), nodes.inline(name, name, classes=["sig-name"]), nodes.Text(after)]
        anchor = "" if _UNLINKED & set(self.options) else self.anchor(signature)
        return nodes.term("", "", *shown, ids=[anchor] if anchor else [], classes=["sig", self.language])

    language = ""

    @property
    def kind(self) -> str:
        return self.name.rpartition(":")[2].removeprefix("auto")

    def full_name(self, signature: str) -> str:
        """Return the name that the description is headed by."""
        return self.short_name(signature)

    def short_name(self, signature: str) -> str:
        """Return the part of the signature that names the object."""
        return signature

    def anchor(self, signature: str) -> str:
        """Return the id that Sphinx gives this signature, "" if unknown."""
        return anchor_of(f"{self.kind}-{signature}") if self.kind == "envvar" else ""

    def content_nodes(self, signatures: list[str]) -> list[nodes.Node]:
        return self.parsed()

    def inside(self, name: str) -> list[nodes.Node]:
        """Return the content, which belongs to the class or structure `name`."""
        self.surroundings.classes.append(name)
        try:
            return self.parsed()
        finally:
            self.surroundings.classes.pop()


class Option(Description):
    """Describes a command-line option."""

    def anchor(self, signature: str) -> str:
        name = re.split(r"[\s,=\[<]", signature, maxsplit=1)[0].lstrip("-/+")
        return "-".join(part for part in ("cmdoption", self.surroundings.program, anchor_of(name)) if part)


class CObject(Description):
    """Describes an object of C."""

    def anchor(self, signature: str) -> str:
        return ".".join(["c", *self.surroundings.classes[-1:], self.short_name(signature)])

    def short_name(self, signature: str) -> str:
        found = _C_POINTER.search(signature) or _C_NAME.search(signature)
        return found[1] if found else signature

    def content_nodes(self, signatures: list[str]) -> list[nodes.Node]:
        if self.name not in _HOLDS_MEMBERS or not signatures:
            return self.parsed()
        return self.inside(self.anchor(signatures[0]).removeprefix("c."))


class PythonObject(Description):
    """Describes an object of Python under its full name; what stands in it belongs to it."""

    language = "py"

    def anchor(self, signature: str) -> str:
        return anchor_of(self.full_name(signature))

    def full_name(self, signature: str) -> str:
        around, name = self.surroundings, self.short_name(signature)
        if self.name.startswith("auto") and "." in name:
            return name
        inner = "" if not around.classes or name.startswith(around.classes[-1] + ".") else around.classes[-1]
        module = self.options.get("module", around.module)
        return ".".join(part for part in (module, inner, name) if part)

    def content_nodes(self, signatures: list[str]) -> list[nodes.Node]:
        if self.kind not in ("class", "exception") or not signatures:
            return self.parsed()
        return self.inside(self.full_name(signatures[0]).removeprefix(self.surroundings.module + "."))

    def short_name(self, signature: str) -> str:
        found = _PYTHON_NAME.match(signature)
        return found[0].rstrip(".") if found else signature
