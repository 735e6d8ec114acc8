"""Finds the sentences of an answer that say that there is none; takes them out while it streams.

Knows English sentences as small models write them; no passage and no model.
"""

import re

from pipelines.answering.grounding.words import content_words

MOST = 300  # characters of a sentence that are held
LONGEST_END = 9  # characters of a sentence's end: its stop, what closes behind it, and the space
MOST_WORDS = 9  # of a sentence that begins like a refusal and says no "not" until then: it is none

_DETERMINERS = ("the", "any", "these", "those", "this", "all")
_KINDS = (
    "provided", "given", "above", "retrieved", "available", "relevant", "following", "quoted", "numbered", "supplied",
)  # fmt: skip
_NOUNS = (
    "passages", "excerpts", "contexts", "documentation", "documents", "texts", "information", "sources", "content",
    "collection",
)  # fmt: skip
_THE = rf"(?:(?:{'|'.join(_DETERMINERS)}) )?(?:(?:{'|'.join(_KINDS)}) )*"
_PASSAGES = r"(?:passages?|excerpts?)"
_TEXTS = r"(?:passages?|excerpts?|contexts?|documentation|documents?|texts?|information|sources?|content|collection)"
_GIVEN = r"(?: (?:that (?:is|are|was|were) |you )?(?:provided|given|above|here|shown|quoted|supplied))?"
_NOT = r"(?:do not|don't|does not|doesn't|did not|didn't|cannot|can't|has no|have no|lacks?|fails? to)"
_UNABLE = r"(?:cannot|can't|could not|couldn't|(?:am|was) (?:unable|not able) to)"
_PLAINLY = r"(?:(?:directly|explicitly|specifically|actually|really|clearly|seem to|appear to) )*"
_TELL = (
    r"(?:contain|mention|provide|include|answer|specify|state|describe|discuss|address|give|explain|cover|say|have"
    r"|offer|tell|indicate|show|hold)"
)
_TOLD = r"(?:mentioned|provided|specified|found|covered|stated|described|answered|discussed|addressed|included|given)"
_ABOUT = (
    r"(?: (?:about|on|regarding|in|that|which|for|to|of|here|(?:is |was )?(?:provided|given|available|found))\b|[.!]?$)"
)

# What may stand before a refusal; taken off.
_LEAD = re.compile(
    r"(?:(?:i am|i'm) (?:very )?sorry|sorry|i apologi[sz]e|unfortunately|however|but|answer:)[,:;]? (?:but |that )?"
    r"|(?:based on|according to|from|after) [^,.]{0,80}, "
)
_REFUSAL = re.compile(
    "|".join(
        (
            r"i (?:do not|don't) (?:really |actually )?(?:know|have)\b",
            rf"i {_UNABLE} (?:find|answer|provide|determine|help|assist|locate|give|tell)\b",
            rf"{_THE}{_PASSAGES}{_GIVEN} {_NOT}\b",
            rf"{_THE}{_TEXTS}{_GIVEN} {_NOT} {_PLAINLY}{_TELL}\b",
            rf"(?:none|neither) of {_THE}{_TEXTS}\b",
            rf"no {_PASSAGES}\b",
            rf"(?:there (?:is|are) |i (?:see|find|found) )?no (?:\w+ )?(?:information|mention|answer|details?){_ABOUT}",
            rf".{{0,120}}\b(?:is|are|was|were) not (?:\w+ly )*{_TOLD}\b.{{0,40}}\b{_THE}{_TEXTS}\b",
            rf"the answer\b.{{0,60}} (?:is|was|can|could) ?not (?:be )?(?:\w+ly )*{_TOLD}\b",
            r"nothing in (?:this|the) (?:collection|passages?|documentation|context)\b",
        )
    )
)
# Words of a refusal of the whole question. The others name what is missing, which a reader may want to know.
_WHOLE = re.compile(r"\b(?:i (?:do not|don't) know|answers?|answering|questions?|collection|enough|sufficient)\b")
_CONTRAST = re.compile(r"[,;:]? (?:but|however|although|though|instead|nevertheless)\b,?(?: \S+){4}")
_OPENERS = (
    "i do not", "i don't", "i am", "i'm", "i can", "i could", "i was", "i apolog", "sorry", "unfortunately", "however",
    "but ", "answer:", "based on", "according to", "from ", "after ", "the answer", "none of", "neither of", "no ",
    "nothing in", "there is no", "there are no",
)  # fmt: skip
_SUBJECT = re.compile(rf"{_THE}{_TEXTS}\b")
_MARKS = re.compile(r"^[\s>*_#\-\"'“`]+")
_NUMBERS = re.compile(r"\s*\[\d[\d,; -]*\]|\s*\[[\d,; -]*$")  # whole ones, and one that has begun
_LEADING = re.compile(r"^(?:\[\d[\d,; -]*\]\s*)+")
_NO = re.compile(r"\b(?:not|no|none|neither|nothing|cannot|unable|lacks?|fails?)\b|n't\b")
_ENDS = re.compile(r"[.!?][\"')*_\]`”]*\s$")
_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
# A question that asks to be shown or told something: "Yes" alone is no answer to it.
_REQUEST = re.compile(
    r"(?:\b(?:can|could|would|will) (?:you|someone|anyone) (?:please )?|^(?:please )?)"
    r"(?:show|give|tell|explain|provide|share|write|describe|list|help|point|send)\b",
    re.IGNORECASE,
)
_AGREEING = content_words("yes sure certainly course absolutely can could you me i show give provide here")


def is_refusal(sentence: str) -> bool:
    """Return whether a sentence says that the passages, or the model, have no answer, and nothing else."""
    text = _plain(sentence)
    while lead := _LEAD.match(text):
        text = text[lead.end() :]
    return bool(_REFUSAL.match(text)) and not _CONTRAST.search(text)


def is_echo(sentence: str, question: str) -> bool:
    """Return whether a sentence only repeats a request: "Yes, you can show me an example of it." """
    said = content_words(_plain(sentence))
    repeated = said <= content_words(question) | _AGREEING
    return bool(said) and repeated and bool(_REQUEST.search(question)) and not sentence.rstrip().endswith(":")


def is_whole(sentence: str) -> bool:
    """Return whether a refusal speaks of the whole question, as "I do not know", not of a part that is missing."""
    return bool(_WHOLE.search(_plain(sentence)))


def gives_up(text: str) -> bool:
    """Return whether an answer begins with a whole sentence that is a refusal of the question: no more is needed."""
    first = re.match(r"\s*(.{1,300}?[.!?])(?:\s|$)", text)
    return first is not None and is_refusal(first[1]) and is_whole(first[1])


def may_refuse(begin: str) -> bool:
    """Return whether a sentence that begins so may still become a refusal."""
    text = _plain(begin)
    begins = any(text.startswith(opener) or opener.startswith(text) for opener in _OPENERS)
    if not any(map(str.isalnum, text)):
        return not _FENCE.match(begin)
    if len(text) > MOST or not (begins or _SUBJECT.match(text) or _may_be_subject(text.split())):
        return False
    return len(text.split()) < MOST_WORDS or bool(_NO.search(text))


class RefusalFilter:
    """Takes refusals out of a streamed answer. Text that can't be one leaves with the delta it came in.

    A refusal at the beginning is taken out, and so is one of the whole question after other sentences, which small
    models append to good answers. With `final` nothing after a refusal at the beginning is believed.
    A sentence with the word `copied`, which only the prompt's example has, counts as one; so does a beginning that
    only repeats the request of `question`.
    """

    def __init__(self, *, final: bool = False, copied: str = "", question: str = "") -> None:
        self._final, self._copied, self._question = final, copied, question
        self._refusals, self._written, self._said, self._taken = 0, False, False, False
        self._held, self._code = True, False
        self._sentence = self._line = ""

    @property
    def refused(self) -> bool:
        """Whether the text so far says nothing but that there is no answer, or has no words."""
        return self._written and not self._said

    def feed(self, delta: str) -> str:
        """Return the text that may leave now that `delta` has come."""
        return "".join(map(self._take, delta))

    def close(self) -> str:
        """Return the rest, as no more text comes."""
        return self._end() if self._sentence else ""

    def _take(self, char: str) -> str:
        if self._final and self._refusals and not self._said:
            return ""
        self._sentence += char
        self._line += char
        if char == "\n" or (char.isspace() and not self._code and _ENDS.search(self._sentence[-LONGEST_END:])):
            return self._end(char)
        if not self._held:
            return char
        if may_refuse(self._sentence) or self._may_echo():
            return ""
        self._held = False
        return self._held_text()

    def _end(self, char: str = "") -> str:
        """End a sentence; return what of it has not left yet, without it if it is a refusal."""
        said = any(map(str.isalnum, _plain(self._sentence))) or bool(_FENCE.match(self._sentence))
        refusal = said and not self._code and self._is_void()
        taken = self._held and refusal and (not self._said or is_whole(self._sentence))
        left = char if not self._held or (taken and char == "\n") else "" if taken else self._held_text()
        left = left if self._said or (said and not taken) else ""
        self._taken = taken or (self._taken and not said)
        self._refusals += refusal
        self._written |= bool(self._sentence.strip())
        self._said |= said and not refusal
        if char == "\n":
            self._code ^= bool(_FENCE.match(self._line))
            self._line = ""
        self._sentence, self._held = "", not self._code
        return left

    def _is_void(self) -> bool:
        copied = bool(self._copied and self._copied in self._sentence)
        return is_refusal(self._sentence) or copied or (not self._said and is_echo(self._sentence, self._question))

    def _may_echo(self) -> bool:
        """Return whether the sentence, whose last word may not be whole, may still repeat the request."""
        whole = re.sub(r"\S+$", "", self._sentence)
        begun = not content_words(_plain(whole)) or is_echo(whole, self._question)
        return not self._said and len(self._sentence) <= MOST and bool(_REQUEST.search(self._question)) and begun

    def _held_text(self) -> str:
        """Return the sentence as it leaves: without the numbers of a refusal before it."""
        return _LEADING.sub("", self._sentence) if self._taken else self._sentence


def _plain(sentence: str) -> str:
    text = _NUMBERS.sub("", _MARKS.sub("", sentence)).replace("’", "'").lower()
    return " ".join(text.split())


def _may_be_subject(words: list[str]) -> bool:
    """Return whether words, the last one perhaps not whole yet, may be the beginning of "the provided passages"."""
    before = (*_DETERMINERS, *_KINDS)
    *whole, last = words or [""]
    return all(word in before for word in whole) and any(word.startswith(last) for word in (*before, *_NOUNS))
