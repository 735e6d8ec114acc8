"""Fills in shortcodes and includes with the words of their own templates, if these are plain.

Hugo's `{{< required >}}` shows the content of `layouts/shortcodes/required.html`, Jekyll's `{% include note.html %}`
the content of `_includes/note.html`. A template with conditions or loops, or that wraps text, is not filled in: other
code reads the attributes of its tag. This module reads no file itself, and runs nothing.
"""

import re
from collections.abc import Callable
from functools import partial
from html import unescape

from pipelines.indexing.reading.verbatim import replace_outside_code

# From a file's path, relative to another file's or to a folder above that, to the file's text; "" if there is no file.
Find = Callable[[str, str], str]

LONGEST = 4_000  # characters of a template; a longer one is a program
_TAG = re.compile(
    r"\{\{[<%]\s*(?P<shortcode>[\w-]+)(?P<said>(?:\s[^{}<>%]*)?)/?[>%]\}\}"
    r"|\{%-?\s*include\s+(?P<include>[\w-]+\.(?:html|md))(?P<told>(?:\s[^{}%]*)?)-?%\}"
)
_PLACES = {"shortcode": "layouts/shortcodes/{}.html layouts/_shortcodes/{}.html", "include": "_includes/{}"}
_VALUE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|(\S+))|\"([^\"]*)\"|'([^']*)'|(\S+)")
_UNSEEN = re.compile(r"<!--.*?-->|\{\{-?/\*.*?\*/-?\}\}|<(svg|script|style|iframe)\b.*?</\1>", re.DOTALL)
_ACTION = re.compile(r"\{\{-?(.*?)-?\}\}|\{%.*?%\}", re.DOTALL)
_NAMED = re.compile(r"(?:\.Get\s+\"?([\w-]+)\"?|include\.([\w-]+))(?:\s*\|\s*\w+)*")
_WORDED = re.compile(r"(?:i18n|T)\s+\"([\w-]+)\"(?:\s*\|\s*\w+)*")


def with_shortcodes(path: str, text: str, find: Find) -> str:
    """Return the text of the file at `path` with its shortcodes filled in."""
    return replace_outside_code(_TAG, partial(_filled, path, find), text)


def shown(template: str, said: str) -> str | None:
    """Return the words of a template with its tag's values, None if the template does more than show words."""
    values: dict[str, str] = {}
    for name, *given in _VALUE.findall(said):
        values[name or str(len(values))] = "".join(given)
    text, whole = _UNSEEN.sub("", template), True

    def fill(action: re.Match[str]) -> str:
        nonlocal whole
        said = (action[1] or "").strip()
        if named := _NAMED.fullmatch(said):
            return values.get(named[1] or named[2], "")
        if worded := _WORDED.fullmatch(said):
            return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", worded[1]).lower()
        whole = False
        return ""

    text = _ACTION.sub(fill, re.sub(r"<[^<>]*>", " ", text))
    return " ".join(unescape(text).split()) if whole else None


def _filled(path: str, find: Find, match: re.Match[str]) -> str:
    kind = "shortcode" if match["shortcode"] else "include"
    template = next(filter(None, (find(place.format(match[kind]), path) for place in _PLACES[kind].split())), "")
    if not template or len(template) > LONGEST or _is_open(template):
        return match[0]
    words = shown(template, match["said"] or match["told"] or "")
    return words or match[0]


def _is_open(template: str) -> bool:
    """Return whether a template opens or closes elements that other tags close or open."""
    tags = re.findall(r"<(/?)(\w++)[^<>]*?(/?)>", _UNSEEN.sub("", template))
    return sum(not end for close, _, end in tags if not close) != sum(bool(close) for close, _, _ in tags)
