"""Withholds long runs of a secret text, such as the system prompt, from a stream of words.

Knows words only; no Markdown, no prompt and no model.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

WITHHELD = "(withheld)"
# Consecutive words. In 26,000 words of the Ray docs and of answers about them, the longest run shared with a system
# prompt of the usual kind is 3 words ("the number of"); 10 leaves room for prompts that quote, and finds a sentence.
RUN = 10
SHORTEST = 4  # a secret with fewer words is a phrase that anyone may say

# Case, digits, punctuation and markup are not part of a word: numbering or decorating a secret does not free it.
_WORD = re.compile(r"[^\W\d_]+")


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


@dataclass(slots=True)
class _HeldWord:
    """A word that may belong to a run, with the text before it."""

    before: str
    word: str
    secret: bool = False


@dataclass(frozen=True, slots=True)
class _Secret:
    """The words of a secret, None for allowed ones; `run` is the number of words that give it away."""

    words: tuple[str | None, ...]
    run: int

    @property
    def free(self) -> int:
        """The number of words of a run that leave before it counts as one."""
        return self.run // 3


def _secret(text: str, allowed: Sequence[str]) -> _Secret:
    words: list[str | None] = list(_words(text))
    run = min(RUN, len(words))
    for phrase in map(_words, allowed):
        for at in range(len(words) - len(phrase) + 1) if phrase else ():
            if words[at : at + len(phrase)] == phrase:
                words[at : at + len(phrase)] = [None] * len(phrase)
    return _Secret(tuple(words), run)


@dataclass(slots=True)
class SecretFilter:
    """A streaming filter: runs of `secrets` become `(withheld)`, except for texts of `allowed` inside them.

    A run is RUN consecutive words of a secret, or all of a shorter one. Its first third leaves, as any text may begin
    so: plain words leave as they come, and the result does not depend on the chunks.
    """

    secrets: Sequence[str] = ()
    allowed: Sequence[str] = ()
    _secrets: list[_Secret] = field(init=False)
    _places: dict[str, list[tuple[int, int]]] = field(init=False)
    _runs: dict[tuple[int, int], int] = field(init=False, default_factory=dict)
    _held: list[_HeldWord] = field(init=False, default_factory=list)
    _text: str = field(init=False, default="")
    _sent: int = field(init=False, default=0)  # how many characters of _text have left already
    _inside: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        found = [_secret(text, self.allowed) for text in self.secrets]
        self._secrets = [secret for secret in found if len(secret.words) >= SHORTEST]
        self._places = {}
        for n, secret in enumerate(self._secrets):
            for at, word in enumerate(secret.words):
                if word is not None:
                    self._places.setdefault(word, []).append((n, at))

    def feed(self, text: str) -> str:
        """Return the text that may leave now that `text` has come."""
        return self._take(text, final=False) if self._places else text

    def close(self) -> str:
        """Return the rest, as no more text comes."""
        return self._take("", final=True)

    def _take(self, text: str, *, final: bool) -> str:
        self._text += text
        out: list[str] = []
        at = 0
        for match in _WORD.finditer(self._text):
            if match.end() == len(self._text) and not final:
                break  # it may go on
            out.append(self._word(self._text[at : match.start()], match[0])[self._sent :])
            self._sent, at = 0, match.end()
        self._text = self._text[at:]
        if final:
            out.append(self._flush(len(self._held)) + self._text[self._sent :])
            self._text, self._sent = "", 0
        elif self._free():
            out.append(self._text[self._sent :])
            self._sent = len(self._text)
        return "".join(out)

    def _free(self) -> bool:
        """Return whether the next word may leave whatever it is: no run is long enough to give a secret away."""
        begun = any(length >= self._secrets[n].free for (n, _), length in self._runs.items())
        return not (begun or self._held or self._inside)

    def _word(self, before: str, word: str) -> str:
        """Take a whole word and return the text that leaves."""
        self._held.append(_HeldWord(before, word))
        self._follow(word.casefold())
        keep = 0
        for (n, _), length in self._runs.items():
            beyond = max(length - self._secrets[n].free, 0)
            keep = max(keep, beyond)
            if length >= self._secrets[n].run:
                for held in self._held[-beyond:]:
                    held.secret = True
        return self._flush(len(self._held) - min(keep, len(self._held)))

    def _follow(self, word: str) -> None:
        before = self._runs
        self._runs = {(n, at): before.get((n, at - 1), 0) + 1 for n, at in self._places.get(word, ())}

    def _flush(self, count: int) -> str:
        out = []
        for held in self._held[:count]:
            if not held.secret:
                out.append(held.before + held.word)
            elif not self._inside:
                out.append(held.before + WITHHELD)
            self._inside = held.secret
        del self._held[:count]
        return "".join(out)
