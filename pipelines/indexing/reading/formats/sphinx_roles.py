"""The roles of Sphinx as text: what a reader of the published page sees in their place."""

import re
from typing import Any

from docutils import nodes
from docutils.utils import unescape

from pipelines.indexing.reading.formats.sphinx_objects import names

LABEL = "raydex-label"  # the attribute of a reference that still needs the title of its target

_TITLED = re.compile(r"^(?P<title>.+?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
# Roles for prose; the words of every other role name something in code.
_PROSE = names(
    "ref doc term numref any abbr guilabel menuselection dfn index download sup sub eq math emphasis strong "
    "title title-reference pep rfc cve cwe keyword kbd issue gh pr user"
)
_CALLED = ("func", "meth", "function", "method")
_SAMPLE = re.compile(r"(?<!\\)[{}]")


def read_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return the words of any role: its title, else its target as Sphinx would show it."""
    role, words = name.lower().rpartition(":")[2], unescape(text)
    titled = _TITLED.match(words)
    shown = titled["title"] if titled else _target(role, words)
    if role == "ref" and not titled:
        return [nodes.inline("", shown, **{LABEL: words.strip()})], []
    return [(nodes.inline if role in _PROSE else nodes.literal)("", shown)], []


def _target(role: str, words: str) -> str:
    if role in ("samp", "file"):
        return _SAMPLE.sub("", words)
    if role == "menuselection":
        return words.replace("-->", "→")
    if role in _PROSE:
        return words.strip().lstrip("!")
    name = words.strip().lstrip("!")
    if name.startswith("~"):
        name = name[1:].rpartition(".")[2]
    plain = role in _CALLED and not name.endswith(")")
    return f"{name}()" if plain else name
