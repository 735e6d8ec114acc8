"""Parses replies of language models: prose without remarks, damaged JSON, lists in any format.

Knows the formats in which models write, not the questions they answer; callers interpret the items or objects. No
function here raises, even for malformed replies.
"""

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pipelines.text.cleaning import clean_for_model
from pipelines.text.phrases import read_phrases

# A fence with the white space around it. Possessive quantifiers keep a run of white space from being rescanned.
_FENCE = re.compile(r"(?P<before>\s*+)```\w*+(?P<after>\s*+)")
_NEXT_FENCE = re.compile(rf"(?<!\s){_FENCE.pattern}")
# Limits for a repair, in characters and in nested brackets. No reply that we ask for is larger.
LONGEST_REPAIRED, DEEPEST = 50_000, 50
# How many braces may fail to start a wanted object; a failure after at most FEW_READ characters is not counted.
MOST_TRIES, FEW_READ = 50, 100
# A JSON list or object may begin at a bracket that is followed by a string, a key or the closing bracket.
_JSON_BEGINS = re.compile(r"[\[{]\s*(?:[\"'{\]]|\}|\w+\s*:)")
# The marker of a list item. A number needs a space after its point: "3.10" is a version.
_MARK = re.compile(
    r"[-*+–—]\s+|[•‣◦▪·]\s*|\*\*\d{1,2}[.)]?\*\*[.):]?\s*|[(\[]?\d{1,2}[)\]]\s*|\d{1,2}[.:]\s+|\d{1,2}\s+[-–—]\s+"
    r"|[(]?[a-z][)]\s+|[a-h]\.\s+|(?:(?:search )?query|question|q)\s*\d{0,2}(?:\s*:\s*|\.\s+)",
    re.IGNORECASE,
)
_PHRASES = read_phrases(__name__)
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」"}


# ---------------------------------------------------------------------------------------------- JSON


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties, all required."""
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": dict(properties), **closed}


def read_json(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the JSON list or object in `text`, even in prose, fenced, cut off or damaged; None if there is none."""
    begins = _JSON_BEGINS.search(text)
    value = _repair(text[begins.start() :]) if begins else None
    return value if isinstance(value, (dict, list)) else None


def read_objects(text: str, keys: Collection[str]) -> list[dict[str, Any]]:
    """Return the JSON objects in `text` that have one of `keys`, with their keys in lower case.

    Valid objects come first, even if their strings contain braces. The ones that had to be repaired follow.
    """
    sound, rest = _sound_objects(text, keys)
    return [*sound, *_repaired_objects(rest, keys)]


def _sound_objects(text: str, keys: Collection[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the objects that are valid JSON, and the text without them."""
    decoder, place, begun = json.JSONDecoder(strict=False), 0, 0
    objects: list[dict[str, Any]] = []
    rest: list[str] = []
    tries = MOST_TRIES
    while (place := text.find("{", place)) >= 0 and tries:
        try:
            value, end = decoder.raw_decode(text, place)
        except RecursionError:
            break
        except ValueError as error:
            value, end = None, getattr(error, "pos", place)
        named = _with_keys(value, keys)
        tries -= not named and end - place > FEW_READ
        if named:
            objects.append(named)
            rest += [text[begun:place], " "]
            begun = end
        place = end if named else place + 1
    return objects, "".join([*rest, text[begun:]])


def _repaired_objects(text: str, keys: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects that json-repair can read: each has a brace, then one of `keys` before the next brace."""
    begins = re.compile(rf"""\{{[^{{}}]*?["']?\b(?:{"|".join(map(re.escape, keys))})["']?\s*:""", re.IGNORECASE)
    starts = [match.start() for match in begins.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        value = _repair(text[start:end])
        values = value if isinstance(value, list) else [value]
        yield from filter(None, (_with_keys(value, keys) for value in values))


def _with_keys(value: Any, keys: Collection[str]) -> dict[str, Any]:
    """Return the object with its keys in lower case if it has one of `keys`, else an empty dict."""
    named = {str(key).lower(): item for key, item in value.items()} if isinstance(value, dict) else {}
    return named if set(named) & set(keys) else {}


def _repair(text: str) -> Any:
    import json_repair

    if len(text) > LONGEST_REPAIRED or _depth(text) > DEEPEST:
        return None
    try:
        return json_repair.loads(text)
    except (RecursionError, ValueError):
        return None


def _depth(text: str) -> int:
    """Return the maximum nesting depth of brackets."""
    steps = (1 if sign in "[{" else -1 for sign in text if sign in "[]{}")
    return max(itertools.accumulate(steps), default=0)


# ---------------------------------------------------------------------------------------------- prose


def read_prose(text: str) -> str:
    """Return `text` without fences and the remarks around it; "" for a refusal or if there is only a remark."""
    lines = _without_fences(clean_for_model(text)).strip().splitlines()
    if lines and _PHRASES["refusal"].search(lines[0].strip()):
        return ""
    said = [line for line in lines if not _PHRASES["remark"].search(line.strip())]
    alone = "" if text.rstrip().endswith(":") else "\n".join(lines)  # "Sure, set `x` to 1." is the whole reply
    return "\n".join(said).strip() or alone.strip()


def _without_fences(text: str) -> str:
    """Return `text` without its fence lines and the blank lines around them."""
    kept: list[str] = []
    at = 0
    while found := _FENCE.match(text, at) or _NEXT_FENCE.search(text, at):
        start, before, after = found.start(), found["before"], found["after"]
        opens, closes = start == 0 or text[start - 1] == "\n", found.end() == len(text)
        if not ((opens or "\n" in before) and (closes or "\n" in after)):  # there are words on the same line
            kept.append(text[at : found.start("after")])
            at = found.start("after")
            continue
        kept += [text[at:start], "" if opens else before[: before.index("\n") + 1]]
        at = found.end() if closes else found.start("after") + after.rindex("\n")
    return "".join([*kept, text[at:]])


# ---------------------------------------------------------------------------------------------- lists


def read_items(text: str) -> list[str]:
    """Return the items of a list, one per line or as JSON, without duplicates in other case, spacing or ending.

    Numbers, bullets, quotes, code fences and headings are removed. Remarks and refusals are left out. Lines after a
    refusal are left out too, unless they are marked as items.
    """
    items: dict[str, str] = {}
    for item in _items(text):
        items.setdefault(item_key(item), item)
    return list(items.values())


def item_key(item: str) -> str:
    """Return a key that is equal for items which differ only in case, spacing or ending."""
    return " ".join(clean_for_model(item).casefold().split()).rstrip(" .?!")


def _items(text: str) -> Iterator[str]:
    refused = False
    for line in _lines(clean_for_model(text)):
        bare = _bare(line)
        if _PHRASES["refusal"].search(bare):
            refused = True
        elif _is_item(bare) and not (refused and bare == line):
            yield bare


def _lines(text: str) -> list[str]:
    """Return the lines without blanks, fences and headings, or the strings of a JSON list if the reply is one."""
    plain = _without_fences(text).strip()
    lines = (" ".join(line.split()) for line in _strings(plain) or plain.splitlines())
    return [line for line in lines if line and not line.startswith(("```", "# ", "## ", "### "))]


def _strings(text: str) -> list[str]:
    """Return the strings of a JSON list that starts a line, bare or under any key; [] if there is none."""
    begins = re.search(r"^[\[{]", text, re.MULTILINE)
    value = read_json(text[begins.start() :]) if begins else None
    lists = value.values() if isinstance(value, dict) else [value]
    return [item for items in lists if isinstance(items, list) for item in items if isinstance(item, str)]


def _bare(line: str) -> str:
    """Return a line without its list marker, trailing comma, quotes and stars."""
    line = _unquote(line.removesuffix(","))
    mark = _MARK.match(line)
    return _unquote(line[mark.end() :]) if mark else line


def _unquote(line: str) -> str:
    if len(line) > 4 and line.startswith("**") and line.endswith("**"):
        line = line[2:-2]
    inner = line[1:-1].strip()
    quoted = len(line) > 2 and _QUOTES.get(line[0]) == line[-1] and line[0] not in inner and line[-1] not in inner
    return inner if quoted else line.strip()


def _is_item(line: str) -> bool:
    return any(sign.isalpha() for sign in line) and not line.endswith(":") and not _PHRASES["remark"].search(line)
