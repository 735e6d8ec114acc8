"""Shows code as its page does: without the notation that marks lines, and with changes as a diff.

The notations come from Shiki (`// [!code ++]`, VitePress and others), Docusaurus (`// highlight-next-line`) and
Expressive Code (`ins={2}` in the info string, Starlight).
"""

import re

_BEGINS = r"(?<![ \t])[ \t]*+(?://|#|--|;|%|<!--|\{?/\*)[ \t]*+"
_ENDS = r"[ \t]*+(?:-->|\*/\}?)?[ \t]*+$"
_MARK = re.compile(rf"{_BEGINS}\[!code (?P<sign>\+\+|--)?[^\]\n]{{0,200}}?(?::(?P<count>\d{{1,4}}))?\]{_ENDS}")
_MARK_LINE = re.compile(rf"{_BEGINS}highlight-(?:next-line|start|end){_ENDS}")
_CHANGED = re.compile(r"(?<!\S)(ins|del)=\{([\d,\s-]{1,500})\}")
_SIGNS = {"ins": "+", "++": "+", "del": "-", "--": "-"}


def shown_code(code: str, info: str) -> str:
    """Return the code of a fence as readers see it, given its info string.

    If a line is marked as a change, each line begins with "+", "-" or a space.
    """
    if "[!" not in code and "highlight-" not in code and not _CHANGED.search(info):
        return code
    lines: list[str] = []
    signs: dict[int, str] = {}
    for line in code.split("\n"):
        mark = _MARK.search(line)
        if mark and mark["sign"]:
            first = len(lines)
            signs |= dict.fromkeys(range(first, first + int(mark["count"] or 1)), _SIGNS[mark["sign"]])
        text = line[: mark.start()] if mark else line.replace("[!!code", "[!code")
        if not _MARK_LINE.fullmatch(line) and (text.strip() or not mark):
            lines.append(text)
    for kind, numbers in _CHANGED.findall(info):
        for first, last in re.findall(r"(\d{1,4})(?:\s*-\s*(\d{1,4}))?", numbers):
            signs |= dict.fromkeys(range(int(first) - 1, int(last or first)), _SIGNS[kind])
    if not signs:
        return "\n".join(lines)
    return "\n".join(f"{signs.get(place, ' ')}{line}" if line else line for place, line in enumerate(lines))
