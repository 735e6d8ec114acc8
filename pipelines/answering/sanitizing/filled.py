"""Tells whether a URL is one of a passage's, with other numbers or its placeholders filled in.

`?limit=1000` for a passage's `?limit=100`, `/users/42` for `/users/<id>`. Scheme, host and port must be the passage's.
A value may be a short number or a word of the passages, so it can carry next to nothing else that the model has read.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

# What the values of one URL may carry: a timestamp has six numbers and 14 digits; a text needs far more.
MOST_VALUES, MOST_DIGITS = 6, 14
MOST_OF_A_HOST = 50  # URLs of one host that are compared, so that a passage of thousands costs little
LONGEST = 500  # characters of such a URL
_RUN = re.compile(r"(?:<[^<>\n]{1,60}>|\{\{[^{}\n]{1,60}\}\}|[^\s<>\"'`])+")
_HOST = re.compile(r"(?<![a-z])[a-z]++://[^/?#\s{}<>$\[\]@\\]++(?=[/?#])", re.IGNORECASE)
_HOLE = re.compile(
    r"(<[^<>]*>|\$?\{\{?[^{}]*\}?\}|\$\w+|\[[^\[\]]*\]|(?<=/):\w+|(?<![A-Za-z0-9])[A-Z]+(?:_[A-Z]+)+(?![A-Za-z0-9])"
    r"|[0-9]+)"
)
_NUMBER = re.compile(r"v?[0-9]+(?:[._-][0-9]+)*")
_WORD = re.compile(r"\w+(?:[.-]\w+)*")
_MARKS = "<>{}[]$:"
_ENDS = ".,;:!?)*_~|"


class FilledURLs:
    """Compares URLs with the URLs in some passages, ignoring numbers and placeholders."""

    def __init__(self, passages: Iterable[str]) -> None:
        self._words = set[str]()
        self._templates = defaultdict[str, list[list[str]]](list)
        for passage in passages:
            self._words.update(_WORD.findall(passage))
            for found in _HOST.finditer(passage):
                self._add(found[0], passage[found.start() : found.start() + LONGEST])

    def _add(self, host: str, text: str) -> None:
        run = _RUN.match(text)
        parts = _HOLE.split(run[0].rstrip(_ENDS)[len(host) :]) if run else []
        known = self._templates[host]
        if len(parts) > 1 and len(known) < MOST_OF_A_HOST and parts not in known:
            known.append(parts)

    def __contains__(self, url: str) -> bool:
        """Return whether `url` is a URL of a passage with other numbers or with its placeholders filled in."""
        host = _HOST.match(url)
        if host is None or len(url) > LONGEST:
            return False
        path = url[len(host[0]) :]
        return any(self._is_harmless(parts, path) for parts in self._templates.get(host[0], ()))

    def _is_harmless(self, parts: list[str], path: str) -> bool:
        filled = _values(parts[::2], path)
        if filled is None:
            return False
        new = {value for value, was in zip(filled, parts[1::2], strict=True) if value != was}
        digits = sum(len(re.sub(r"[^0-9]", "", value)) for value in new if _NUMBER.fullmatch(value))
        known = all(_NUMBER.fullmatch(value) or value.strip(_MARKS) in self._words for value in new)
        return known and len(new) <= MOST_VALUES and digits <= MOST_DIGITS


def _values(literals: list[str], path: str) -> list[str] | None:
    """Return the texts between `literals` in `path`, or None if it doesn't consist of them. Takes linear time."""
    if not path.startswith(literals[0]) or not path.endswith(literals[-1]):
        return None
    ends = len(path) - len(literals[-1])
    begin, values = len(literals[0]), list[str]()
    for _, literal in pairwise(literals):
        last = len(values) == len(literals) - 2
        end = ends if last else path.find(literal, begin + 1, ends)
        if end <= begin:
            return None
        values.append(path[begin:end])
        begin = end + len(literal)
    return values
