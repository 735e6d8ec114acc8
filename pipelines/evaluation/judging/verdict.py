"""A judge's verdict, a score with its reasoning, read from whatever a model wrote.

Knows JSON and its usual damages (json-repair) and how models write numbers; no model and no prompt. What is doubtful is
no verdict: asking again costs a call, a wrong score costs the evaluation.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.characters import clean_for_model
from pipelines.llm.retry import UnusableReply

Score = int | float

SCORES = ("score", "rating", "grade")
REASONS = ("reasoning", "reason", "explanation", "justification", "rationale", "feedback", "comment", "analysis")

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# A number with what it is out of; not part of a longer number, a range, a percentage or a compound ("two-step").
_VALUE = (
    rf"(?P<number>[-−]?\d+(?:[.,]\d+)?½?|\b(?:{'|'.join(_WORDS)})(?:\s+and\s+a\s+half)?\b)"
    r"(?:\s*(?:/|out\s+of\s|of(?=\s*\d))\s*(?P<of>\d+(?:\.0)?|five|ten))?"
    r"(?!\d|[.,]\d|\s*%|\s*(?:[-–—]|\bto\b|\bor\b)\s*\d|-\w|\s+of\b)"
)
_NAME = rf"(?:{'|'.join(SCORES)}|mark)"
_IS = r"(?:\s*(?:\bis\b|\bwas\b|\bof\b|\bwould\s+be\b|[:=|→]|\s[-–—](?=\s)))*\s*"
_SUPPOSED = r"(?!\s*(?:would|requires?|means|is\s+(?:for|reserved|given)|if\b|could|should|might))"

_LABELLED = re.compile(
    rf"^\W*(?P<kind>(?:[\w-]+\s+){{0,3}}?){_NAME}\b\)?{_IS}{_VALUE}{_SUPPOSED}", re.IGNORECASE | re.MULTILINE
)
_FINAL = re.compile(r"\b(?:final|overall|total)\b", re.IGNORECASE)
_FIRST = re.compile(
    rf"\A\W*?{_VALUE}\s*(?:$|(?P<mark>[.)])|[-–—:,;]|\b(?:because|since|as|for|stars?|points?)\b)", re.IGNORECASE | re.M
)
_LAST = re.compile(rf"^[^\w\n-]*{_VALUE}(?:\s*(?:stars?|points?))?\W*\Z", re.IGNORECASE | re.MULTILINE)
_FRACTION = re.compile(
    rf"(?<![\w.]){_VALUE}(?=\s*(?:$|[.,;:!)—–]|stars?\b|points?\b|because\b|since\b|overall\b))", re.I | re.M
)
_RATED = re.compile(rf"(?<![\w.]){_VALUE}\s*stars?\b", re.IGNORECASE)
_STARS = re.compile(r"(?P<full>[★⭐🌟]+)(?P<empty>☆*)")
_PROSE = re.compile(
    rf"\b(?:{_NAME}|(?:i|we)(?:['’]?(?:d|ll|ve)|\s+(?:would|will|must|can))?\s+(?:give|rate|{_NAME}|assign|award)"
    r"|(?:answer|response|it|this)\s+(?:deserves|earns|merits|receives|scores|gets|rates))\b"
    rf"[^.\n\d]{{0,60}}?(?:\b(?:of|is|as|a|an|at|be|it|this|answer|scores|rate)\s+|[:=]\s*){_VALUE}{_SUPPOSED}",
    re.IGNORECASE,
)
_OBJECT = re.compile(rf"""\{{[^{{}}]*?["']?\b(?:{"|".join(SCORES)})["']?\s*:""", re.IGNORECASE)
_REASON = re.compile(rf"^\W*(?:{'|'.join(REASONS)})\b\s*[:=-]\s*", re.IGNORECASE)


class NoVerdict(UnusableReply):
    """A judge's reply holds no score, several different ones, or one beyond the scale."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score of the scale that was asked for, and why."""

    score: Score
    reasoning: str


@dataclass(frozen=True, slots=True)
class _Found:
    """A score as it stands in a text: its value, what it is out of, where; `kind` are the words before its label."""

    value: float
    of: float | None
    start: int
    end: int
    kind: str = ""


def parse(text: str, lowest: int = 1, highest: int = 5) -> Verdict:
    """The verdict in `text`: JSON, "Score: 4/5", a line with the number, a sentence that gives it; before the reasons
    or after them.

    A final or overall score wins over partial ones. Raises NoVerdict: no score, scores that differ, one outside of
    `lowest` to `highest` or on another scale.
    """
    said = clean_for_model(text).rpartition("</think>")[2].strip()
    if found := _from_json(said):
        scores = {_checked(score, lowest, highest) for score, _ in found}
        return Verdict(_only(scores), next((reason for _, reason in found if reason), "") or _outside(said))
    plain = _plain(said, lowest, highest)
    for candidates in _readings(plain, highest):
        if candidates:
            score = _only({_checked(found, lowest, highest) for found in candidates})
            return Verdict(score, _without(plain, candidates))
    raise NoVerdict("there is no score in the reply")


def _only(scores: set[Score]) -> Score:
    if len(scores) > 1:
        raise NoVerdict(f"the reply holds different scores: {', '.join(map(str, sorted(scores)))}")
    return scores.pop()


def _checked(found: _Found, lowest: int, highest: int) -> Score:
    if found.of not in (None, highest):
        raise NoVerdict(f"the score {found.value:g} is out of {found.of:g}, not of {highest}")
    if not lowest <= found.value <= highest:
        raise NoVerdict(f"the score {found.value:g} is not from {lowest} to {highest}")
    return int(found.value) if found.value.is_integer() else found.value


# ---------------------------------------------------------------------------------------------- JSON


def _from_json(text: str) -> list[tuple[_Found, str]]:
    """Score and reason of each JSON object with a score. Raises NoVerdict for a score that is no number."""
    sound, rest = _sound(text)
    return [(_of_object(found), _reason_of(found)) for found in (*sound, *_damaged(rest))]


def _sound(text: str) -> tuple[list[Mapping[str, Any]], str]:
    """The objects with a score that are JSON as it should be, whatever their strings hold, and the text without."""
    decoder, place, objects, rest = json.JSONDecoder(strict=False), 0, [], text
    while (place := text.find("{", place)) >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            found, end = None, place + 1
        if named := _scored(found):
            objects.append(named)
            rest = rest.replace(text[place:end], " ")
        place = end if named else place + 1
    return objects, rest


def _damaged(text: str) -> list[Mapping[str, Any]]:
    """The objects with a score as json-repair reads them."""
    import json_repair

    starts = [begins.start() for begins in _OBJECT.finditer(text)]
    parts = [json_repair.loads(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=False)]
    return [named for part in parts if (named := _scored(part[0] if isinstance(part, list) and part else part))]


def _scored(found: Any) -> Mapping[str, Any]:
    """The object with its names in lower case, if it has a score; else nothing."""
    named = {str(key).lower(): value for key, value in found.items()} if isinstance(found, dict) else {}
    return named if set(named) & set(SCORES) else {}


def _of_object(found: Mapping[str, Any]) -> _Found:
    value = next(found[name] for name in SCORES if name in found)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _Found(float(str(value)), None, 0, 0)  # an integer beyond any float is infinite as a text
    match = re.match(rf"\s*{_VALUE}", str(value), re.IGNORECASE)
    if not match:
        raise NoVerdict(f"the score {value!r} is not a number")
    return _found(match)


def _reason_of(found: Mapping[str, Any]) -> str:
    value = next((found[name] for name in REASONS if found.get(name)), "")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value).strip()


def _outside(text: str) -> str:
    """What stands around a JSON object that gives no reason itself."""
    rest = re.sub(r"\{.*\}", " ", text, flags=re.DOTALL)
    return _tidy(re.sub(r"```\w*", " ", rest))


# ---------------------------------------------------------------------------------------------- text


def _readings(plain: str, highest: int) -> Iterator[list[_Found]]:
    """The scores in `plain` by each way of writing one, the clearest way first."""
    labelled = [_found(match) for match in _LABELLED.finditer(plain)]
    yield [found for found in labelled if _FINAL.search(found.kind)] or labelled
    yield _on_their_own(plain)
    yield [found for match in _FRACTION.finditer(plain) if (found := _found(match)).of == highest]
    yield [
        _Found(float(len(match["full"])), None, *match.span())
        for match in _STARS.finditer(plain)
        if not match["empty"] or len(match["full"] + match["empty"]) == highest
    ]
    yield [_found(match) for match in _RATED.finditer(plain)]
    yield [_found(match) for match in _PROSE.finditer(plain)]


def _on_their_own(plain: str) -> list[_Found]:
    """A number that begins the text or is its last line; "1. …" begins a list rather."""
    first, last = _FIRST.search(plain), _LAST.search(plain)
    if first and first["mark"] and _is_item(plain, first):
        first = None
    return [_found(match) for match in (first, last) if match]


def _is_item(plain: str, first: re.Match[str]) -> bool:
    """Whether the number that begins the text counts: it is 1 with words behind it, or the next line begins alike."""
    same_line = plain[first.end() :].split("\n", 1)[0].strip()
    counts = re.search(rf"^\s*\d+\{first['mark']}\s", plain[first.end() :], re.MULTILINE)
    return bool(counts) or (first["number"] == "1" and bool(same_line))


def _found(match: re.Match[str]) -> _Found:
    groups = match.groupdict()
    of = groups["of"]
    return _Found(_number(groups["number"]), _number(of) if of else None, *match.span(), groups.get("kind") or "")


def _number(text: str) -> float:
    word = text.lower().split()
    if word[0] in _WORDS:
        return _WORDS.index(word[0]) + (0.5 if len(word) > 1 else 0.0)
    digits = text.replace(",", ".").replace("−", "-")
    return float(digits.rstrip("½")) + (0.5 if digits.endswith("½") else 0.0)


def _plain(text: str, lowest: int, highest: int) -> str:
    """`text` without markup, brackets around numbers and mentions of the scale itself."""
    text = re.sub(r"\\boxed|```\w*|\*+|(?<!\w)_+|_+(?!\w)|^#+ +|^> ?|`(?=[\d])|(?<=\d)`", "", text, flags=re.MULTILINE)
    text = re.sub(rf"</({_NAME}|{'|'.join(REASONS)})>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(rf"<({_NAME}|{'|'.join(REASONS)})>", r"\n\1: ", text, flags=re.IGNORECASE)
    meaning = r"(?:\s*\([^)\n]{0,60}\)|\s*=\s*\w+)?"
    scale = (
        r"[(\[<]?\s*(?:\bon\s+)?(?:\b(?:an?|the)\s+)?(?:\bscale\b|\brange\b)?\s*(?:\b(?:of|from|between)\b)?\s*"
        rf"(?<![\d./])\b{lowest}{meaning}\s*(?:-|–|—|to|through|and|\.\.+)\s*{highest}(?!\d|[.,]\d){meaning}\s*[)\]>]?"
    )
    text = re.sub(scale, " ", text, flags=re.IGNORECASE)
    return re.sub(r"[\[\]{}<>\"“”]+(?=\s*[-−]?\d)|(?<=\d)[\[\]{}>\"“”]+", "", text).strip()


def _without(plain: str, candidates: Sequence[_Found]) -> str:
    """The text without the score."""
    found = candidates[0]
    return _tidy(f"{plain[: found.start]}\n{plain[found.end :]}")


def _tidy(text: str) -> str:
    bare = text.strip().lstrip(".,;:!)-–—| \n").strip()
    return _REASON.sub("", bare, count=1).strip()
