"""Says how Sphinx shows directives and roles, which reStructuredText and MyST share.

Independent of parsers.
"""

import re
from typing import Literal

from pipelines.text.phrases import read_names, read_table

_NAMES, _TABLE = read_names(__name__), read_table(__name__)
_CHANGES: dict[str, str] = _TABLE["changes"]
_BOXES: dict[str, str] = {**{name: name.capitalize() for name in _NAMES["admonitions"]}, **_TABLE["boxes"]}
# Docutils knows some of these names, but shows them in another way.
SERIES: dict[str, str] = _TABLE["series"]
OWN_DIRECTIVES = frozenset((*_CHANGES, *_TABLE["boxes"])).union(
    *(_NAMES[kind] for kind in ("silent", "code", "objects", "untitled"))
)
DirectiveKind = Literal["silent", "code", "change", "box", "object", "untitled", "titled"]

_TITLED = re.compile(r"(?P<title>.*?\S)\s*+<(?P<target>[^<>]++)>", re.DOTALL)


def directive_kind(name: str, argument: str) -> DirectiveKind:
    """Return how a directive shows its argument and content.

    `silent` ones show nothing and `code` a listing. The argument is the version of a `change`, the text below the title
    of a `box`, the signature of an `object`, a setting of an `untitled` one, and a title for any other.
    """
    name = name.lower()
    if not _NAMES["silent"].isdisjoint((name, f"{name}:{argument}")):
        return "silent"
    if name in _NAMES["code"]:
        return "code"
    if name in _CHANGES:
        return "change"
    if name in _BOXES:
        return "box"
    domain, colon, _ = name.partition(":")
    if (colon and domain not in _NAMES["prose_domains"]) or name.startswith("auto") or name in _NAMES["objects"]:
        return "object"
    return "untitled" if name in _NAMES["untitled"] else "titled"


def box_title(name: str) -> str:
    """Return the title that Sphinx gives a box, such as "See also"."""
    return _BOXES[name.lower()]


def change_note(name: str, argument: str) -> str:
    """Return a version note: "Added in version 3.2: text"."""
    version, *text = argument.split(None, 1) or [""]
    if name == "deprecated-removed" and text:
        removed, *text = text[0].split(None, 1)
        version = f"{version}, will be removed in version {removed}"
    return ": ".join([f"{_CHANGES[name]} {version}", *text])


def role_title(text: str) -> str | None:
    """Return the title in a role's text `title <target>`, None if it has none."""
    titled = _TITLED.fullmatch(text)
    return titled["title"] if titled else None


def series_name(role: str, target: str) -> str:
    """Return how Sphinx shows a numbered document: `rfc` and `9103#section-9.3` are "RFC 9103 Section 9.3"."""
    number, _, anchor = target.partition("#")
    kind, _, part = anchor.partition("-")
    where = f" {kind.title()} {part}" if role == "rfc" and kind in ("appendix", "page", "section") else ""
    return f"{role.upper()} {number}{where}".rstrip()


def series_link(name: str, text: str) -> str:
    """Return the URL of a numbered document to which Sphinx links the role, "" for another role."""
    titled = _TITLED.fullmatch(text)
    number, sign, anchor = (titled["target"] if titled else text).strip().lstrip("!").partition("#")
    url = SERIES.get(name.lower(), "")
    known = url and number.replace("-", "").isdecimal()
    return url.format(number) + sign + anchor if known else ""


def shown_role(name: str, text: str) -> tuple[str, bool]:
    """Return the words of a role and whether they are code: its title, or else its target as the page shows it."""
    role, words = name.lower().rpartition(":")[2], text.strip().lstrip("!")
    title = role_title(words)
    shown = words if title is None else title
    if role in _NAMES["icons"]:
        return "", False
    if role in SERIES:
        return (series_name(role, words) if title is None else title), False
    if role in _NAMES["prose"]:
        return shown.replace("-->", "→"), False
    if role in ("samp", "file"):
        return shown.replace("{", "").replace("}", ""), True
    if shown.startswith("~"):
        shown = shown[1:].rpartition(".")[2]
    elif title is None:
        shown = shown.lstrip(".")
    called = role in _NAMES["called"] and title is None and not shown.endswith(")")
    return f"{shown}()" if called else shown, True
