"""Prompt templates, and passages with numbers that their text can't forge.

The built-in prompts are in prompts.yaml. This module works with texts and hits; it knows nothing about models or
context windows. Text from a page or a reader is data: it is inserted literally, and braces, delimiters and invisible
characters in it have no effect.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter

from pipelines.answering.grounding.answerable import UNKNOWN
from pipelines.answering.hits import place
from pipelines.records import Hit
from pipelines.text.cleaning import clean_for_model
from pipelines.text.phrases import read_table

# The opening or closing mark of a delimiter, including lookalikes that a model reads as one.
_DELIMITER = re.compile(r"[<＜﹤‹〈](?=\s*+(?:[/／∕]\s*+)?(?:passage|draft)\b)", re.IGNORECASE)
# Tokens that begin or end a message in a model's chat template. Servers parse them in a message's text too.
_TURN = re.compile(r"<(?=[|｜][^|｜<>\s]{1,40}[|｜]>|/?(?:start|end)_of_turn>|/?s>|<SYS>>|</SYS>>)|\[(?=/?INST\])")
# The beginning of a line that would look like a passage, the question or another part of a prompt.
_PART = re.compile(
    r"^[^\S\n]*(?=[\[［【]\s*\d+\s*[\]］】]"
    r"|[*_#]*(?:question|answer|an example|passages?|system|user|assistant)\b[*_ ]*[:：])",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"`{3,}(?=[^`]*$)")
LONGEST_TITLE = 300  # characters; a title only locates a passage


class TemplateError(ValueError):
    """A prompt template and its values don't match; the message names the template and the variables."""


class Template:
    """A prompt's text with variables: `{question}` is one, `{{` and `}}` are braces; `name` appears in errors.

    Values are inserted literally: braces in them have no effect.
    """

    def __init__(self, text: str, name: str = "template") -> None:
        self.text, self.name = text, name
        self._parts = tuple(self._parse())

    @property
    def variables(self) -> frozenset[str]:
        """The names between braces."""
        return frozenset(name for _, name in self._parts if name)

    def format(self, /, **values: str) -> str:
        """Return the text with the values of all variables. Raises TemplateError for missing and unknown ones."""
        if missing := self.variables - set(values):
            raise self._error("has no value for", missing)
        if unknown := set(values) - self.variables:
            raise self._error("does not use", unknown)
        return "".join(f"{literal}{values[name] if name else ''}" for literal, name in self._parts)

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


_BUILT_IN: Mapping[str, str] = read_table(__name__)
# The required variables of each prompt, taken from the built-in one. All may also use {unknown}, the sentence for "I do
# not know".
GIVEN = {name: Template(text).variables - {"unknown"} for name, text in _BUILT_IN.items()}
# Settings and questions must not set these.
RESERVED = frozenset({"unknown"}).union(*GIVEN.values())


@dataclass(frozen=True)
class Piece:
    """A passage, or a part of one, as shown to a model; `n` is the passage's number, the same in every call."""

    n: int
    text: str
    title: str = ""

    @classmethod
    def of(cls, n: int, hit: Hit, text: str | None = None) -> "Piece":
        """Return hit number `n`, or a `text` from its passage, without invisible characters."""
        shown = hit.passage if text is None else text
        return cls(n, clean_for_model(shown), clean_for_model(place(hit)))

    def __str__(self) -> str:
        return self.shown

    @cached_property
    def shown(self) -> str:
        """The passage under its number and title. Packing joins the same pieces many times."""
        title = " ".join(self.title.split())[:LONGEST_TITLE]
        return f"[{self.n}] {as_data(title)}".rstrip() + f"\n{as_data(self.text)}"


def passages(pieces: Sequence[Piece]) -> str:
    """Return the passages as one text: a prompt's context."""
    return "\n\n".join(map(str, pieces))


def draft(text: str) -> str:
    """Return an answer between delimiters for a later call, since it may repeat text planted in a passage."""
    return f"<draft>\n{neutralize(text)}\n</draft>"


def drafts(answers: Sequence[str]) -> str:
    """Return answers as one text, for the call that combines them."""
    return "\n\n".join(map(draft, answers))


def neutralize(text: str) -> str:
    """Return `text` changed so that nothing in it opens or closes a passage, a draft or a message."""
    return _TURN.sub(lambda found: "&#91;" if found[0] == "[" else "&lt;", _DELIMITER.sub("&lt;", text))


def as_data(text: str) -> str:
    """Return `text` neutralized, and with ">" before lines that look like a part of the prompt.

    Lines of fenced code stay unchanged: `user: 1000` occurs in many configuration files, and the fence marks it as
    data.
    """
    return "\n".join(part if is_code else _PART.sub("> ", part) for part, is_code in _parts(neutralize(text)))


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of Markdown outside fences, and each fenced code block; an unclosed one isn't code."""
    lines, fence, begin, at = text.split("\n"), "", 0, 0
    for number, line in enumerate(lines):
        bare = line.strip(" \t>")
        if fence and bare == fence:
            if at < begin:
                yield "\n".join(lines[at:begin]), False
            yield "\n".join(lines[begin : number + 1]), True
            fence, at = "", number + 1
        elif not fence and (opening := _FENCE.match(bare)):
            fence, begin = opening[0], number
    if at < len(lines):
        yield "\n".join(lines[at:]), False


class Prompts:
    """The prompts of the synthesis modes: `texts` by name, and built-in prompts for the other names.

    `variables` are default values of the prompts' own variables. Raises TemplateError for an unknown prompt name, for a
    prompt that lacks a variable, and for variables that no prompt has.
    """

    def __init__(self, texts: Mapping[str, str] | None = None, variables: Mapping[str, str] | None = None) -> None:
        self._variables, named = dict(variables or {}), {**_BUILT_IN, **(texts or {})}
        if unknown := named.keys() - GIVEN:
            raise TemplateError(f"no prompt is called {', '.join(sorted(unknown))}; there are {', '.join(GIVEN)}")
        self._templates = {name: Template(text, name) for name, text in named.items()}
        for name, template in self._templates.items():
            if missing := GIVEN[name] - template.variables:
                raise TemplateError(f"prompt template {name!r} lacks {_list(missing)}")
            if foreign := (template.variables & RESERVED) - GIVEN[name] - {"unknown"}:
                raise TemplateError(f"prompt template {name!r} cannot have {_list(foreign)}: it has no such value")
        self.check(self._variables)

    def is_own(self, name: str) -> bool:
        """Return whether the prompt `name` differs from the built-in one."""
        return self._templates[name].text != _BUILT_IN[name]

    def replaced(self, texts: Mapping[str, str]) -> "Prompts":
        """Return these prompts with `texts` replacing some. Raises TemplateError like the constructor."""
        own = {name: template.text for name, template in self._templates.items()}
        return Prompts({**own, **texts}, self._variables) if texts else self

    def check(self, variables: Mapping[str, str]) -> None:
        """Raise TemplateError if `variables` have a reserved name, or a name that no template has."""
        if reserved := set(variables) & RESERVED:
            raise TemplateError(f"the prompt variables {_list(reserved)} are reserved; choose other names")
        known = frozenset[str]().union(*(template.variables for template in self._templates.values()))
        if unknown := set(variables) - known:
            own = known - RESERVED
            raise TemplateError(f"no prompt template has {_list(unknown)}; their own variables: {_list(own)}")

    def render(self, name: str, given: Mapping[str, str], variables: Mapping[str, str]) -> str:
        """Return the prompt `name` with the `given` values and its share of the task's `variables`."""
        template = self._templates[name]
        values = {"unknown": UNKNOWN, **self._variables, **variables, **given}
        return template.format(**{key: value for key, value in values.items() if key in template.variables})


DEFAULT = Prompts()


def _list(names: set[str] | frozenset[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "none"
