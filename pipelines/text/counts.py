"""Writes a number with the noun that it counts: "1 page", "2,000 pages"."""

import re

_VOWEL_Y, _SIBILANT = re.compile(r"[aeiou]y$"), re.compile(r"(?:s|x|z|ch|sh)$")


def counted(number: float, thing: str, things: str = "") -> str:
    """Return a number with its noun: `counted(2, "page")` is "2 pages".

    `things` is the text for any number but 1, where adding an s to `thing` is not enough, as with a verb:
    `counted(n, "page waits", "pages wait")`.
    """
    shown = f"{number:,.15g}"
    return f"{shown} {thing if shown == '1' else things or plural(thing)}"


def plural(noun: str) -> str:
    """Return the regular English plural of a noun."""
    if noun.endswith("y") and not _VOWEL_Y.search(noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if _SIBILANT.search(noun) else f"{noun}s"
