"""Makes questions from headings and first sentences, without a model: "How do I …?", "What is …?".

The questions are few and plain, but sensible: if the phrasing is uncertain, none is made. Knows English and the style
of documentation; the words are in headings.yaml.
"""

import re
from collections.abc import Sequence

from pipelines.text.phrases import compile_phrases, read_table

_TABLE = read_table(__name__)
WORDS = {name: frozenset(text.split()) for name, text in _TABLE.items() if isinstance(text, str)}
PHRASES = compile_phrases(_TABLE)
VERBS = WORDS["verbs"]
_ASKING = ("what", "how", "why", "when", "where", "which", "who", "can", "does", "do", "is", "are", "should", "will")
# Beginnings of headings that are questions without a question mark.
_QUESTIONS = {("what", "is"), ("what", "are"), ("how", "does"), ("how", "do"), ("why", "use"), ("why", "does")}

FEWEST, MOST = 3, 16  # words of a question: fewer are too vague, more are a rearranged sentence
LEAST_TEXT = 80  # minimum characters of a section worth a question


def heading_questions(headings: Sequence[str], text: str) -> list[str]:
    """Return the questions that a section answers, best first, from its `headings` and the beginning of its `text`.

    The page's heading is added if the section's is too vague by itself.
    """
    if len(text) < LEAST_TEXT or not headings:
        return []
    heading, page = _clean(headings[-1]), _clean(headings[0]) if len(headings) > 1 else ""
    found = [_from_heading(heading, page), _from_definition(heading, _sentence(text))]
    return [question for question in dict.fromkeys(filter(None, found)) if _sensible(question)]


def _clean(heading: str) -> str:
    bare = re.sub(r"[¶#]+\s*$|\(.*?(?:alpha|beta|experimental|optional|deprecated).*?\)|[`*]", "", heading, flags=re.I)
    return PHRASES["numbering"].sub("", " ".join(bare.split())).strip(" :.-–—")


def _from_heading(heading: str, page: str) -> str:
    words = heading.split()
    if not words or len(words) > MOST or _is_generic(heading) or PHRASES["unfit"].search(heading):
        return ""
    if words[0].lower() in _ASKING:
        return _from_question(heading)
    verb, rest = _verb(words)
    if not verb or not rest or _points(" ".join(rest)):
        return ""
    question = f"How do I {verb} {_object(rest)}"
    # "Configure logging" on the page "Ray Serve": a reader would ask which logging.
    vague = len(rest) < 2 and page and not _same_subject(page, question) and not _is_generic(page)
    topic = page.split() if vague else []
    is_topic = 0 < len(topic) <= 4 and not _verb(topic)[0] and topic[0].lower() not in _ASKING
    return f"{question} in {page}?" if is_topic else f"{question}?"


def _is_generic(heading: str) -> bool:
    return {word.lower() for word in heading.split()} <= WORDS["generic"]


def _points(text: str) -> bool:
    """Return whether a string refers to something that the reader of a question does not see."""
    return not WORDS["pointing"].isdisjoint(re.findall(r"\w+", text.lower()))


def _from_question(heading: str) -> str:
    """Return a heading that already is a question; "" if it only begins like one ("What's next")."""
    words = heading.rstrip("?").split()
    if _points(heading) or len(words) < FEWEST:
        return ""
    first, second, third = (word.lower() for word in words[:3])
    if heading.endswith("?"):
        return heading
    if second == "to" and third in VERBS and first in ("how", "when", "where"):
        start = "How do I" if first == "how" else f"{first.capitalize()} should I"
        return f"{start} {' '.join([third, *words[3:]])}?"
    return f"{' '.join(words)}?" if (first, second) in _QUESTIONS else ""


def _verb(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the verb at the start of a heading, in its base form, and the words after it; ("", []) without a verb."""
    first, rest = words[0].lower(), list(words[1:])
    is_certain = bool(rest) and rest[0].lower() in WORDS["certain"]
    if base := _base(first):
        return (base, rest) if is_certain or first not in WORDS["nouns"] else ("", [])
    if first == "getting" and [word.lower() for word in rest[:1]] == ["started"] and len(rest) > 2:
        return "get", rest
    if first not in VERBS or not rest or words[0][1:] != first[1:]:
        return "", []
    return (first, rest) if is_certain or first not in WORDS["doubtful"] else ("", [])


def _object(rest: Sequence[str]) -> str:
    """Return the words after a heading's verb in sentence form: small words and a second verb in lower case."""
    small = [word.lower() if word.lower() in WORDS["small"] else word for word in rest]
    for at, word in enumerate(small[:-1]):
        if word in ("and", "or"):
            second = small[at + 1].lower()
            small[at + 1] = second if second in VERBS else _base(second) or small[at + 1]
    return " ".join(small)


def _base(gerund: str) -> str:
    """Return the base form of a gerund: configuring → configure, running → run; "" for nothing, string, ring."""
    if not gerund.endswith("ing"):
        return ""
    stem = gerund[: -len("ing")]
    forms = (stem + "e", stem, stem[:-1] if stem[-1:] == stem[-2:-1] else "")
    return next((form for form in forms if form in VERBS), "")


def _from_definition(heading: str, sentence: str) -> str:
    """Return "What is X?" if the first sentence defines the heading's X."""
    match = PHRASES["defined"].match(sentence)
    if not match or not _same_subject(heading, match["subject"]) or _points(match["subject"]):
        return ""
    if match["subject"].split()[0].lower() in WORDS["choosing"]:
        return ""
    subject = match["subject"].replace("`", "")
    if len(subject.split()) > 5 or _is_generic(subject):
        return ""
    return f"What {match['verb'].lower()} {(match['article'] or '').lower()}{subject}?"


def _same_subject(one: str, other: str) -> bool:
    """Return whether two names share their last word, singular or plural, or one contains the other."""
    a, b = (re.sub(r"[^\w ]", " ", name.lower()).split() for name in (one, other))
    if not a or not b:
        return False
    return a[-1].rstrip("s") == b[-1].rstrip("s") or set(a) <= set(b)


def _sentence(text: str) -> str:
    """Return the first sentence on one line."""
    line = " ".join(text.split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`\"(])", line, maxsplit=1)[0]


def _sensible(question: str) -> bool:
    words = question.split()
    letters = sum(sign.isalpha() or sign in " '’-?.`_" for sign in question)
    return FEWEST <= len(words) <= MOST and letters >= 0.85 * len(question) and question.count("?") == 1
