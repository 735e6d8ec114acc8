"""Extracts the readable attributes of unknown components, directives and elements."""

import re
from collections.abc import Mapping
from html import escape

_ATTRIBUTE = re.compile(
    r"""(?<![\w-])(?>(?:[^\WA-Za-z]|-)*)([A-Za-z][\w-]*+)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|\{\s*["'`]([^"'`${}]*)["'`]\s*\})"""
)
_COMPONENT = re.compile(r"</?(?:[A-Z][\w.]*|[a-z]+-[\w-]+|sup(?=\s[^<>]*/>))((?:\s[^<>]*)?)/?>")
# Attributes of components whose value readers see, and attributes with several words that they never see.
_SHOWN = (
    "title", "label", "heading", "header", "summary", "caption", "tab", "description", "alt", "alt-text", "text",
    "content", "message", "question", "answer", "data-text",
)  # fmt: skip
_UNSEEN = frozenset(
    ("class", "className", "style", "d", "id", "src", "href", "url", "sizes", "media", "on", "if", "when", "keywords")
)
# In JavaScript: a comment, a property whose value is a string, another string, a brace.
_STRING = r"'(?>(?:[^'\\\n]|\\.)*)'|\"(?>(?:[^\"\\\n]|\\.)*)\"|`[^`$\\]*+`"
_PART = re.compile(
    rf"/\*.*?(?:\*/|\Z)|(?P<name>(?<!\w)[A-Za-z_]\w*+)\s*+:\s*+(?P<value>{_STRING})|{_STRING}|(?P<brace>[{{}}])",
    re.DOTALL,
)
_PHRASE = 3  # minimum words in the value of any other attribute


def attributes_of(text: str) -> dict[str, str]:
    """Return the attributes that have string values, in order."""
    return {name: "".join(values).strip() for name, *values in _ATTRIBUTE.findall(text)}


def shown_words(attributes: str) -> str:
    """Return the readable values in an attribute string such as `title="compose.yaml" open`."""
    return shown_of(attributes_of(attributes))


def shown_of(attributes: Mapping[str, str]) -> str:
    """Return the readable text of an unknown element: values of title-like attributes, and values that are phrases."""
    named = [attributes[key] for key in _SHOWN if attributes.get(key)]
    others = (value for key, value in attributes.items() if key not in _SHOWN and key not in _UNSEEN)
    return " ".join([*named, *filter(_is_phrase, others)])


def records_in(attributes: str) -> list[dict[str, str]]:
    """Return the string properties of each JavaScript object in an attribute string: `items={[{ title: "A" }]}`."""
    found: list[dict[str, str]] = []
    around: list[dict[str, str]] = []  # the open objects
    for part in _PART.finditer(attributes) if "{" in attributes else ():
        if part["brace"] == "{":
            around.append({})
            found.append(around[-1])
        elif part["brace"] and around:
            around.pop()
        elif part["name"] and around:
            around[-1][part["name"]] = " ".join(re.sub(r"\\(.)", r"\1", part["value"][1:-1]).split())
    return found


def _is_phrase(value: str) -> bool:
    words = value.split()
    return len(words) >= _PHRASE and all(any(map(str.isalpha, word)) for word in words[:_PHRASE]) and value[0].isupper()


def without_components(html: str) -> str:
    """Return HTML with the tags of components replaced by their readable text."""
    return _COMPONENT.sub(_words_of_tag, html)


def _words_of_tag(tag: re.Match[str]) -> str:
    """Return the readable text of a component's tag, apart from the words next to it."""
    words, text = escape(shown_words(tag[1] or ""), quote=False), tag.string
    before = " " if words and text[tag.start() - 1 : tag.start()].isalnum() else ""
    return f"{before}{words} " if words and text[tag.end() : tag.end() + 1].isalnum() else before + words
