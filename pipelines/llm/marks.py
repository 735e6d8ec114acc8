"""Removes leftovers of a server from a reply: thoughts, template markers, endless repetition.

Knows the markers (marks.yaml); knows no server, model or request.
"""

import regex

from pipelines.text.phrases import read_phrases

# A reply that ends with this many repetitions, of at least this many characters in all, would repeat up to its limit.
# Tables and listings may repeat a line, and layout characters, any number of times.
TIMES, REPEATED, LONGEST_PERIOD = 6, 1_200, 1_000
LONGEST_END = TIMES * LONGEST_PERIOD  # how much of a reply's end is checked
# A partial marker longer than this is text. WINDOW is how many characters are read at a time.
LONGEST_MARK, WINDOW = 200, 2_000

_PHRASES = read_phrases(__name__)
_KINDS = {
    "close": _PHRASES["close"],
    "open": _PHRASES["open"],
    "turn": _PHRASES["turn"],
    "end": _PHRASES["end"],
    "other": _PHRASES["other"],
}
_MARK = regex.compile("|".join(f"(?P<{kind}>{form.pattern})" for kind, form in _KINDS.items()), regex.IGNORECASE)


class ReplyFilter:
    """Removes thoughts, markers and leading blanks from a reply while it streams; `text` is the answer so far.

    Answers may be about templates. So after the answer's first word, a marker that also occurs in `prompt` or inside
    code counts as text, and so do thoughts that begin there and never end. With `thinks` the reply begins inside
    thoughts, because some templates open them themselves; if they never end, everything was the answer. `stopped` says
    why the rest is useless: "stop" if another turn began, "length" if the reply repeats itself. `unopened` is True if
    thoughts ended that no marker had opened.
    """

    def __init__(self, prompt: str = "", thinks: bool = False) -> None:
        self.stopped, self.unopened = "", False
        self._said: list[str] = []
        self._last = ""  # the last characters of the answer
        self._in_code, self._has_s = False, False  # whether backticks are open, whether `<s>` occurred
        self._prompt, self._end, self._held = prompt.lower(), "", ""
        self._until = "close" if thinks else ""  # the kind of marker that ends the thoughts
        self._assumed: list[str] | None = [] if thinks else None  # assumed thoughts that may turn out to be the answer

    @property
    def text(self) -> str:
        """The answer so far."""
        if len(self._said) > 1:
            self._said = ["".join(self._said)]
        return "".join(self._said)

    def feed(self, delta: str) -> str:
        """Return the part of the answer that `delta` completes."""
        out = "".join(self._read(delta[at : at + WINDOW]) for at in range(0, len(delta), WINDOW))
        self._end = (self._end + delta)[-LONGEST_END:]
        if repeats(self._end):
            self.stopped = "length"
        return out

    def _read(self, text: str) -> str:
        """Return the part of the answer that the next characters complete."""
        self._held += text
        out = ""
        while self._held and not self.stopped:
            mark = _MARK.search(self._held, partial=True)
            at = mark.start() if mark else len(self._held)
            if mark and mark.partial and len(self._held) - at > LONGEST_MARK:
                mark, at = None, at + 1
                out += self._say(self._held[:at])
                self._held = self._held[at:]
                continue
            out += self._say(self._held[:at])
            self._held = self._held[at:]
            if mark is None or mark.partial:
                break
            self._held = self._held[len(mark[0]) :]
            out += self._take(mark)
        return out

    def close(self, why: str = "") -> str:
        """Return the rest of the answer, given the reason `why` the reply ended."""
        rest = "" if self.stopped or self._held.startswith(("<|", "<｜")) else self._say(self._held)
        if self._assumed is None or why == "length":
            return rest
        self._until = ""
        return self._say("".join(self._assumed))

    def _say(self, text: str) -> str:
        if self._until:
            if self._assumed is not None:
                self._assumed.append(text)
            return ""
        text = text if self._said else text.lstrip()
        if text:
            self._said.append(text)
            self._in_code ^= text.count("`") % 2 == 1
            self._has_s |= "<s>" in self._last + text
            self._last = (self._last + text)[-2:]
        return text

    def _forget(self) -> None:
        """Discard the text so far: it was thoughts."""
        self._said, self._last, self._in_code, self._has_s = [], "", False, False

    def _take(self, mark: "regex.Match[str]") -> str:
        """Handle a marker; return the part of it that is text."""
        kind, label = next(kind for kind in _KINDS if mark[kind] is not None), mark["label"] or ""
        thinks = kind == "turn" and bool(_PHRASES["thinking"].match(label))
        if self._until:
            if kind == "close" or (kind == self._until and not thinks):
                self.unopened = self.unopened or (self._assumed is not None and not self._said)
                self._until, self._assumed = "", None
            return ""
        if self._said and self._is_word(mark):
            return self._say(mark[0])
        if kind == "close":
            self.unopened = self.unopened or bool(self._said)
            self._forget()
        elif kind in ("turn", "end") and self._said:
            self.stopped = "stop"
        elif kind == "open" or thinks:
            self._until, self._assumed = kind, [mark[0]] if self._said else None
        elif kind == "turn" and not _PHRASES["speaker"].match(label):
            return self._say(label)
        return ""

    def _is_word(self, mark: "regex.Match[str]") -> bool:
        """Return whether a marker after the answer's first word is text: in code, from the prompt, or an HTML tag."""
        alone = mark[0] if mark["label"] is None else mark[0][: mark.start("label") - mark.start()].rstrip()
        spoken = self._in_code or alone.lower() in self._prompt
        return spoken or alone == "<s>" or (alone == "</s>" and self._has_s)


def repeats(text: str) -> bool:
    """Return whether a reply ends in repetitions of the same words."""
    if len(text) < REPEATED:
        return False
    last = text[-20:]
    period = len(text) - len(last) - text.rfind(last, -LONGEST_PERIOD - len(last), -1)
    same = text[-period:]
    return (
        period <= LONGEST_PERIOD
        and any(map(str.isalpha, same))
        and text.endswith(same * max(TIMES, REPEATED // period))
    )
