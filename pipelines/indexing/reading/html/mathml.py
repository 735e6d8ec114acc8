"""Writes formulas in presentation MathML as text: x^2, a_i, (a + b)/c, √(x).

Only for formulas without TeX. Independent of pages.
"""

from collections.abc import Sequence

from lxml.etree import _Element as Element

_SCRIPTS = {"msup": "^", "mover": "^", "msub": "_", "munder": "_"}
_OMITTED = ("annotation", "annotation-xml", "mphantom")
_ACCENTS = frozenset("¯ˆ^~˜→⃗.˙¨")  # drawn over a letter, which stays as it is


def formula_text(formula: Element) -> str:
    """Return a `<math>` element, or a part of one, as text on one line."""
    name = formula.tag.rpartition("}")[2]
    if name in _OMITTED:
        return ""
    if not len(formula):
        return " ".join((formula.text or "").split())
    return _layout(name, [text for part in formula if (text := formula_text(part))], formula)


def _layout(name: str, parts: Sequence[str], formula: Element) -> str:
    """Return the parts of an element with this name, laid out on a line."""
    if name in ("mtable", "mtr", "mlabeledtr"):
        return f"[{'; '.join(parts)}]" if name == "mtable" else ", ".join(parts)
    if name == "msqrt" and parts:
        return f"√{_group(_joined(parts))}"
    if len(parts) == 2 and name in ("mfrac", "mroot", *_SCRIPTS):
        return _pair(name, *parts)
    if len(parts) == 3 and name in ("msubsup", "munderover"):
        return _pair("msup", _pair("msub", *parts[:2]), parts[2])
    if name == "mfenced":
        return f"{formula.get('open', '(')}{', '.join(parts)}{formula.get('close', ')')}"
    return _joined(parts)


def _joined(parts: Sequence[str]) -> str:
    """Join parts, with a space where a script or a denominator would run into the next name."""
    text = ""
    for part in parts:
        runs_on = text[-1:].isalnum() and part[:1].isalnum() and any(sign in text for sign in "^_/")
        text += f" {part}" if runs_on else part
    return text


def _pair(name: str, first: str, second: str) -> str:
    if name == "mfrac":
        return f"{_group(first)}/{_group(second)}"
    if name == "mroot":
        return f"{_group(first)}^(1/{second})"
    if name == "mover" and second in _ACCENTS:
        return first
    return f"{first if '_' in first else _group(first)}{_SCRIPTS[name]}{_group(second)}"


def _group(text: str) -> str:
    """Return an operand, in brackets if it is more than one name or number."""
    is_single = len(text) == 1 or text.isalnum() or (text[0] in "([" and text[-1] in ")]")
    return text if is_single else f"({text})"
