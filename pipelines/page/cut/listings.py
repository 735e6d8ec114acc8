"""Finds the best places to cut a listing that is too long, and the scope of each part.

The scope of a line is the chain of less indented lines above it: a class, a function, the key of a mapping. Editors
show these lines above the window ("sticky scroll"). Independent of programming languages.
"""

import re
from collections.abc import Iterator, Sequence

_PROMPT = re.compile(r">>> ?|\$ |\S{1,20}[=#][#>] ")
_CLOSES = re.compile(r"\s*(?:[)\]}]|</|(?:else|elif|except|finally|catch|end|done|fi|esac)\b)")
# Decorators, attributes and comments belong to the following line.
_PREPARES = re.compile(r"\s*(?:>>> |\.\.\. )?(?:@|#|//|--|/?\*)")
_DEEPEST = 20  # levels to track; people do not write code that is nested deeper


class Scopes:
    """Reads the lines of a listing in order, and tracks the scope of the next one."""

    def __init__(self, listing: str, scope: Sequence[str] = ()) -> None:
        self._prompted = bool(_PROMPT.match(listing))
        self._open = [(self._depth(line), line) for line in scope]
        self._before = ""

    def read(self, part: str) -> None:
        """Read the lines of `part`."""
        for line in _lines(part):
            self._open = [*self._above(line)[-_DEEPEST:], (self._depth(line), line)]
            self._before = line

    def scope_of(self, part: str) -> tuple[str, ...]:
        """Return the scope of the first line of `part`, outermost line first."""
        return tuple(line for _, line in self._above(next(_lines(part), "")))

    def continues(self, part: str) -> bool:
        """Return whether `part` closes an open bracket or block, or belongs to the comment or decorator before it."""
        return bool(_CLOSES.match(next(_lines(part), ""))) or bool(_PREPARES.match(self._before))

    def _above(self, line: str) -> list[tuple[int, str]]:
        depth = self._depth(line)
        return [(above, opened) for above, opened in self._open if above < depth]

    def _depth(self, line: str) -> int:
        """Return the indentation of `line`. In a shell or REPL session, other lines are nested in their command."""
        indent = len(line) - len(line.lstrip())
        return indent if not self._prompted else 0 if _PROMPT.match(line) else indent + 1


def _lines(part: str) -> Iterator[str]:
    return (line for line in part.split("\n") if line.strip())
