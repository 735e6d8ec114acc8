"""Turns MDX into Markdown: imports, exports and expressions are dropped, components leave their text.

One scan of the text; code in fences and backticks stays as it is. An element that does not end is text.
"""

import re
from collections.abc import Iterator, Mapping
from html import escape

_FENCE = re.compile(r"^[ \t]*(?:[-*+>]\s+)*(`{3,}|~{3,})")
_MODULE = re.compile(
    r"^(?:import\s+(?:[\"'{*]|[\w$]+\s*(?:,|\s+from\b))|export\s+(?:default|const|let|var|function|class|async|\{|\*))"
)
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w.:-]*|(?=>))")
_ATTRIBUTE = re.compile(r"""([A-Za-z][\w-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|\{\s*["'`]([^"'`${}]*)["'`]\s*\})""")
_COMPONENT = re.compile(r"</?(?:[A-Z][\w.]*|[a-z]+-[\w-]+|sup(?=\s[^<>]*/>))((?:\s[^<>]*)?)/?>")
_MATH = re.compile(r"\$\$[^$]{1,5000}\$\$|\$(?=[^\s$])(?=[^$\n]*[\\^_{<])[^$\n]{1,500}(?<!\s)\$(?!\d)")
_COMMENT_ID = re.compile(r"\{/\*\s*(#[\w:.-]+)\s*\*/\}")
_TEXT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|`([^`$]*)`)\s*""", re.DOTALL)
# Attributes of components whose value a reader sees, and some that hold several words which none sees.
_SHOWN = (
    "title", "label", "heading", "header", "summary", "caption", "tab", "description", "alt", "alt-text", "text",
    "content", "message", "question", "answer", "data-text",
)  # fmt: skip
_UNSEEN = frozenset(
    ("class", "className", "style", "d", "id", "src", "href", "url", "sizes", "media", "on", "if", "when", "keywords")
)
_PHRASE = 3  # words that a value of another name has at least
_KEPT = {"id": "id", "name": "name", "href": "href", "alt": "alt", "className": "class", "class": "class"}
_INLINE = frozenset(
    ("a", "abbr", "b", "br", "cite", "code", "del", "em", "i", "img", "ins", "kbd", "mark", "q", "s", "small", "span",
     "strong", "sub", "sup", "u", "wbr")
)  # fmt: skip
_BLANK = "\n\n"  # lets Markdown begin again after a tag
# Characters: keeps the scan linear; the largest of a real documentation has 2,000.
_MAX_EXPRESSION = 20_000


def without_jsx(text: str) -> str:
    """Return `text` as Markdown."""
    return "".join(_plain(part) if prose else part for prose, part in _parts(text))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield prose and fenced code in order; modules (imports and exports) are left out."""
    prose: list[str] = []
    fence = ""
    depth, module, blank = 0, False, True
    for line in text.splitlines(keepends=True):
        opened = _FENCE.match(line)
        if fence:
            prose.append(line)
            if opened and opened[1].startswith(fence) and not line.strip().strip(fence[0]):
                yield False, "".join(prose)
                prose, fence = [], ""
            continue
        if module or (blank and _MODULE.match(line)):
            depth = max(0, depth + sum(map(line.count, "{[(")) - sum(map(line.count, "}])")))
            module = bool(depth) or bool(line.strip())
            continue
        if opened:
            yield True, "".join(prose)
            prose, fence = [], opened[1]
        prose.append(line)
        blank = not line.strip() or line.startswith("---")
    yield not fence, "".join(prose)


def _plain(text: str) -> str:
    text = _COMMENT_ID.sub(r"{\1}", text)
    done: list[str] = []
    place = 0
    while place < len(text):
        sign = re.compile(r"[\\`<{$]").search(text, place)
        if sign is None:
            break
        done.append(text[place : sign.start()])
        shown, place = _replaced(text, sign.start())
        done.append(shown)
    return "".join([*done, text[place:]])


def _replaced(text: str, place: int) -> tuple[str, int]:
    """Return what replaces the construct that begins at `place`, and where it ends."""
    sign = text[place]
    if sign == "\\":
        return text[place : place + 2], place + 2
    if sign == "`":
        run = re.compile("`+").match(text, place)
        ticks = run[0] if run else "`"
        end = re.compile(rf"(?<!`){ticks}(?!`)").search(text, place + len(ticks))
        stop = end.end() if end else place + len(ticks)
        return text[place:stop], stop
    if sign == "{":
        return _expression(text, place)
    if sign == "$":
        formula = _MATH.match(text, place)
        return (formula[0], formula.end()) if formula else (sign, place + 1)
    return _element(text, place)


def _expression(text: str, place: int) -> tuple[str, int]:
    if text.startswith("{#", place):
        return "{", place + 1
    if (end := end_of_braces(text, place)) < 0:  # of what was looked through for nothing, a part is text
        end = place + 1 + min(len(text) - place, _MAX_EXPRESSION) // 20
        return text[place:end], end
    words = _TEXT.fullmatch(text, place + 1, end - 1)
    return next((part for part in words.groups() if part is not None), "") if words else "", end


def _element(text: str, place: int) -> tuple[str, int]:
    if text.startswith("<!--", place) and (end := text.find("-->", place, place + _MAX_EXPRESSION)) > 0:
        return "", end + len("-->")
    tag = _TAG.match(text, place)
    end = _end_of_tag(text, tag.end()) if tag else -1
    if tag is None or end < 0:
        return "&lt;", place + 1
    first, last = not text[text.rfind("\n", 0, place) + 1 : place].strip(), text[end : end + 1] in ("", "\n")
    name, attributes = tag["name"], _attributes(text[tag.end() : end - 1])
    if name[:1].islower() and "." not in name:
        shown = _html(tag["close"], name, attributes)
        return shown if name in _INLINE else f"{_BLANK * first}{shown}{_BLANK * last}", end
    alone = first and last
    words = _shown(attributes)
    return (f"\n\n**{words}**\n\n" if words and alone else "\n\n" if alone else words and f" {words} "), end


def shown_words(attributes: str) -> str:
    """Return the titles among attributes such as `title="compose.yaml" open`."""
    return _shown(_attributes(attributes))


def _shown(attributes: Mapping[str, str]) -> str:
    """Return what a reader sees of an element that nobody knows: the values that are named so, or read as a phrase."""
    named = [attributes[key] for key in _SHOWN if attributes.get(key)]
    others = (value for key, value in attributes.items() if key not in _SHOWN and key not in _UNSEEN)
    return " ".join([*named, *filter(_is_phrase, others)])


def _is_phrase(value: str) -> bool:
    words = value.split()
    return len(words) >= _PHRASE and all(any(map(str.isalpha, word)) for word in words[:_PHRASE]) and value[0].isupper()


def without_components(html: str) -> str:
    """Return HTML with what a reader sees of components in the place of their tags."""
    return _COMPONENT.sub(lambda tag: escape(_shown(_attributes(tag[1] or "")), quote=False), html)


def _attributes(text: str) -> dict[str, str]:
    return {name: "".join(values).strip() for name, *values in _ATTRIBUTE.findall(text)}


def _html(close: str, name: str, attributes: dict[str, str]) -> str:
    kept = "".join(f' {_KEPT[key]}="{value}"' for key, value in attributes.items() if key in _KEPT)
    return f"<{close}{name}{kept}>"


def _end_of_tag(text: str, place: int) -> int:
    """Return the place after the ">" of a tag, -1 if it has none; values in quotes and braces may hold one."""
    while place < len(text):
        sign = text[place]
        if sign == ">":
            return place + 1
        if sign in "\"'":
            place = text.find(sign, place + 1)
        elif sign == "{":
            place = end_of_braces(text, place) - 1
        elif sign == "<":
            return -1
        if place < 0:
            return -1
        place += 1
    return -1


def end_of_braces(text: str, place: int) -> int:
    """Return the place after the brace that closes the one at `place`, -1 if none does within _MAX_EXPRESSION."""
    depth, quote = 0, ""
    for number in range(place, min(len(text), place + _MAX_EXPRESSION)):
        sign = text[number]
        if quote:
            quote = "" if sign == quote and text[number - 1] != "\\" else quote
        elif sign in "\"'`":
            quote = sign
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if not depth:
                return number + 1
    return -1
