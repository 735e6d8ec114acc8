"""Prompt templates, and passages between marks that their text cannot close or forge.

Knows texts and hits; no model and no window. Text from a page or a reader is data: it is filled in as it is, and
braces, delimiters and invisible characters in it have no effect.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.hits import heading
from pipelines.answering.synthesis.styles import DEFAULT_STYLE, EXAMPLE_TEXT, EXAMPLE_TITLE, PLAIN, TAGS, PromptStyle
from pipelines.records import Hit
from pipelines.text.cleaning import clean_for_model

# The opening or closing mark of a delimiter, also in forms that a model reads as one.
_DELIMITER = re.compile(r"[<＜﹤‹〈](?=\s*[/／∕]?\s*(?:passage|draft)\b)", re.IGNORECASE)
# What begins or ends a message in the chat template of a model. Servers read it in a message's text too.
_TURN = re.compile(r"<(?=[|｜][^|｜<>\s]{1,40}[|｜]>|/?(?:start|end)_of_turn>|/?s>|<SYS>>|</SYS>>)|\[(?=/?INST\])")
# The beginning of a line that would be a plain passage, the question or another part of a prompt.
_PART = re.compile(
    r"^[^\S\n]*(?=[\[［【]\s*\d+\s*[\]］】]"
    r"|[*_#]*(?:question|answer|an example|passages?|system|user|assistant)\b[*_ ]*[:：])",
    re.IGNORECASE | re.MULTILINE,
)
LONGEST_ATTRIBUTE = 300  # characters of a title or an address: they only name the place of a passage


class TemplateError(ValueError):
    """A prompt template and its values do not fit; the message names the template and the variables."""


class Template:
    """A prompt's text with variables: `{question}` is one, `{{` and `}}` are braces.

    `defaults` are values of variables that nobody else gives. Values are filled in as they are: braces in them have no
    effect.
    """

    def __init__(self, text: str, /, **defaults: str) -> None:
        self.text, self.defaults, self.name = text, defaults, "template"
        self._parts = tuple(self._parse())
        if unknown := set(defaults) - self.variables:
            raise self._error("does not use", unknown)

    @property
    def variables(self) -> frozenset[str]:
        """The names between braces."""
        return frozenset(name for _, name in self._parts if name)

    def with_name(self, name: str) -> "Template":
        """Return the same template with a name for its errors."""
        template = Template(self.text, **self.defaults)
        template.name = name
        return template

    def format(self, /, **values: str) -> str:
        """Return the text with the values of all variables. Raises TemplateError for missing and unknown ones."""
        if missing := self.variables - set(values) - set(self.defaults):
            raise self._error("has no value for", missing)
        if unknown := set(values) - self.variables:
            raise self._error("does not use", unknown)
        given = {**self.defaults, **values}
        return "".join(f"{literal}{given[name] if name else ''}" for literal, name in self._parts)

    def _parse(self) -> Iterator[tuple[str, str]]:
        try:
            for literal, name, spec, conversion in Formatter().parse(self.text):
                if name is not None and (not name.isidentifier() or spec or conversion):
                    raise ValueError(f"{{{name}}} is not a plain variable name; write {{{{ and }}}} for braces")
                yield literal, name or ""
        except ValueError as error:
            raise TemplateError(f"prompt template {self.text[:80]!r}: {error}") from error

    def _error(self, what: str, names: set[str] | frozenset[str]) -> TemplateError:
        return TemplateError(
            f"prompt template {self.name!r} {what} {_list(names)}; its variables: {_list(self.variables)}"
        )


# The variables that each template must have; all may also use {unknown}, the sentence for "I do not know".
GIVEN: Mapping[str, frozenset[str]] = {
    "system": frozenset(),
    "qa": frozenset({"question", "context"}),
    "refine": frozenset({"question", "answer", "context"}),
    "tree": frozenset({"question", "answers"}),
    "generation": frozenset({"question"}),
    "structured": frozenset(),
}
# Settings and questions may not give these.
RESERVED = frozenset({"unknown"}).union(*GIVEN.values())
_OWN = Template("")  # stands for a style's own template


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage or a part of one, as a model reads it. `n` is the passage's number, the same in every call."""

    n: int
    text: str
    source: str = ""
    title: str = ""

    @classmethod
    def of(cls, n: int, hit: Hit, text: str | None = None) -> "Piece":
        """Return hit number `n`, or a `text` from its passage, without characters that no reader sees."""
        shown = hit.passage if text is None else text
        return cls(n, clean_for_model(shown), clean_for_model(hit.source), clean_for_model(heading(hit)))

    def __str__(self) -> str:
        """Return the passage between tags."""
        named = (("source", _attribute(self.source)), ("title", _attribute(self.title)))
        attributes = "".join(f' {name}="{value}"' for name, value in named if value)
        return f'<passage n="{self.n}"{attributes}>\n{neutralize(self.text)}\n</passage>'

    def plain(self) -> str:
        """Return the passage under its number and title."""
        return f"[{self.n}] {neutralize(_line(self.title), PLAIN)}".rstrip() + f"\n{neutralize(self.text, PLAIN)}"


def passages(pieces: Sequence[Piece], marks: str = TAGS) -> str:
    """Return passages one after the other: a prompt's context."""
    return "\n\n".join(piece.plain() if marks == PLAIN else str(piece) for piece in pieces)


def draft(text: str) -> str:
    """Return an answer for a later call, between delimiters: it may repeat what a passage planted."""
    return f"<draft>\n{neutralize(text)}\n</draft>"


def drafts(answers: Sequence[str]) -> str:
    """Return answers one after the other, for the call that combines them."""
    return "\n\n".join(map(draft, answers))


def neutralize(text: str, marks: str = TAGS) -> str:
    """Return `text` such that nothing in it opens or closes a passage, a draft or a message.

    With plain `marks` a line that looks like a part of the prompt is quoted with ">".
    """
    text = _TURN.sub(lambda found: "&#91;" if found[0] == "[" else "&lt;", _DELIMITER.sub("&lt;", text))
    return _PART.sub("> ", text) if marks == PLAIN else text


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_ATTRIBUTE]


def _attribute(text: str) -> str:
    line = _line(neutralize(text))
    return line.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass(frozen=True)
class Prompts:
    """The prompts of the synthesis modes in one style. Raises TemplateError for a template that lacks a variable.

    `qa` answers from passages, `refine` improves an answer by further ones, `tree` makes one answer from several,
    `generation` has no passages; `structured` follows `qa` or `refine` where a step is to reply in JSON. Those that are
    not given are the style's own.
    """

    system: Template = _OWN
    qa: Template = _OWN
    refine: Template = _OWN
    tree: Template = _OWN
    generation: Template = _OWN
    structured: Template = _OWN
    style: PromptStyle = DEFAULT_STYLE

    def __post_init__(self) -> None:
        own = self.style.texts(passages([Piece(1, EXAMPLE_TEXT, title=EXAMPLE_TITLE)], self.style.marks))
        for name, given in GIVEN.items():
            chosen: Template = getattr(self, name)
            template = (Template(own[name]) if chosen is _OWN else chosen).with_name(name)
            if missing := given - template.variables:
                raise TemplateError(f"prompt template {name!r} lacks {_list(missing)}")
            if unknown := (template.variables & RESERVED) - given - {"unknown"}:
                raise TemplateError(f"prompt template {name!r} cannot have {_list(unknown)}: it has no such value")
            if reserved := set(template.defaults) & RESERVED:
                raise TemplateError(f"prompt template {name!r} cannot fix {_list(reserved)}: reserved")
            object.__setattr__(self, name, template)

    @classmethod
    def from_mapping(
        cls, texts: Mapping[str, str], variables: Mapping[str, str] | None = None, style: PromptStyle = DEFAULT_STYLE
    ) -> "Prompts":
        """Return the style's prompts with some texts replaced, by name; `variables` are fixed wherever they are used.

        Raises TemplateError for a name that is no prompt, and for variables that no template has.
        """
        if unknown := set(texts) - set(GIVEN):
            raise TemplateError(f"no prompt is called {', '.join(sorted(unknown))}; there are {', '.join(GIVEN)}")
        fixed = dict(variables or {})
        plain = cls(**{name: Template(text) for name, text in texts.items()}, style=style)
        plain.check(fixed)
        return cls(**{name: _fix(getattr(plain, name), fixed) for name in GIVEN}, style=style)

    def check(self, variables: Mapping[str, str]) -> None:
        """Raise TemplateError if `variables` have a reserved name, or one that no template has."""
        if reserved := set(variables) & RESERVED:
            raise TemplateError(f"the prompt variables {_list(reserved)} are reserved; choose other names")
        known = frozenset[str]().union(*(getattr(self, name).variables for name in GIVEN))
        if unknown := set(variables) - known:
            own = known - RESERVED
            raise TemplateError(f"no prompt template has {_list(unknown)}; their own variables: {_list(own)}")

    def render(self, name: str, given: Mapping[str, str], variables: Mapping[str, str]) -> str:
        """Return the prompt `name` with the `given` values, and with those of the task's `variables` that it has."""
        template: Template = getattr(self, name)
        values = {"unknown": UNKNOWN, **variables, **given}
        return template.format(**{key: value for key, value in values.items() if key in template.variables})


DEFAULT = Prompts()


def _fix(template: Template, variables: Mapping[str, str]) -> Template:
    return Template(template.text, **{k: v for k, v in variables.items() if k in template.variables})


def _list(names: set[str] | frozenset[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "none"
