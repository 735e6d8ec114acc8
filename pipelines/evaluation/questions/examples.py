"""Chooses example questions for new readers of a collection, from its headings.

Knows sections and how often their pages are linked to; knows no model and no database. Fewer questions are better than
odd ones, so a collection may have none.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from pipelines.evaluation.questions.headings import PHRASES, VERBS, WORDS, heading_questions
from pipelines.store import SectionStart

MOST = 6
# Candidates that are compared with each other; the rest score too low to be chosen.
_COMPARED = 150
# Maximum characters of a question, so that it fits on two lines of a phone.
_MOST_CHARACTERS = 70
# Commonness of a word that is in the headings of a few of many pages, and of a word for the site's main subject.
_KNOWN, _EVERYWHERE = 0.6, 0.85
# "Überblick", "简介": shorter headings name only a kind of section.
_FEWEST_LETTERS = 10
# A page with more sections is a whole site on one page.
_MOST_SECTIONS = 200


def _singular(word: str) -> str:
    return word if word.endswith("ss") or len(word) < 4 else word.removesuffix("s")


# Words that say nothing about a question's subject, and words that name one only together with others.
_EMPTY = frozenset(map(_singular, WORDS["empty"] | WORDS["choosing"]))
_VAGUE = frozenset(map(_singular, WORDS["vague"]))
# Signs that a person did not write it: names in code, markup, a dash, numbers of two digits.
_CODE = re.compile(r"[_./\\<>{}()\[\]=@#$&|*—–:;\"“”]|[a-z][A-Z]|\d\d|\bclass\b", re.ASCII)
# The purpose of a command, as in "CREATE INDEX — define a new index".
_COMMAND = re.compile(r"^[\w .-]{2,40} [—–] (?P<clause>[a-z]+ [a-zA-Z -]{6,60})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question with the page that answers it; `about` are the words that name its subject."""

    question: str
    url: str
    score: float
    about: frozenset[str]


def choose_examples(sections: Iterable[SectionStart], most: int = MOST) -> list[ExampleQuestion]:
    """Return at most `most` questions on different subjects, best first."""
    found = sorted(_candidates(list(sections)), key=lambda example: (-example.score, example.question))[:_COMPARED]
    chosen: list[ExampleQuestion] = []
    while found and len(chosen) < most:
        chosen.append(max(found, key=lambda one: one.score - _overlap(one, chosen)))
        found = [example for example in found if not example.about <= chosen[-1].about]
    return chosen


def _candidates(sections: Sequence[SectionStart]) -> Iterable[ExampleQuestion]:
    casing = Casing(section.text for section in sections)
    common = _commonness(sections)
    most_links = max((section.links for section in sections), default=0)
    on_page = Counter(section.url for section in sections)
    for section in sections:
        if on_page[section.url] > _MOST_SECTIONS or not section.headings:
            continue
        weight = math.log1p(section.links) / math.log1p(most_links) if most_links else 0.0
        for question in _questions(section, casing):
            words = [_singular(word) for word in re.findall(r"[\w’'-]+", question.lower())]
            about = frozenset(words) - _EMPTY
            score = _score(question, about, section)
            if score > 0 and len(about) == sum(word in about for word in words):
                score += weight + mean(min(common[word], _KNOWN) / _KNOWN for word in about - _VAGUE - VERBS)
                yield ExampleQuestion(
                    question, section.url, score, frozenset(w for w in about if common[w] < _EVERYWHERE)
                )


def _commonness(sections: Sequence[SectionStart]) -> Mapping[str, float]:
    """Return how common each word is in the headings of a collection, 0 to 1.

    Words for its subject are in many of them.
    """
    pages: dict[str, set[str]] = {}
    for section in sections:
        for word in re.findall(r"[\w’'-]+", " ".join((section.title, *section.headings[-1:])).lower()):
            pages.setdefault(_singular(word), set()).add(section.url)
    most = max(map(len, pages.values()), default=1)
    return defaultdict(float, {word: math.log(len(on)) / math.log(most + 1) for word, on in pages.items()})


def _questions(section: SectionStart, casing: "Casing") -> list[str]:
    """Return the questions that a section answers, phrased as a person would write them."""
    heading, text = section.headings[-1], section.text
    if section.language and not section.language.lower().startswith("en"):
        return [heading] if len(heading) >= _FEWEST_LETTERS else []  # no question forms for this language
    made = [_from_command(f"{heading}\n{text}"), *heading_questions(section.headings, text)]
    made = made if any(made) else [_from_task(heading, text)]
    names = text if len(section.headings) == 1 else f"{section.headings[0]}\n{text}"
    return [
        re.sub(r"^How to (?=[a-z])", "How do I ", _in_sentence_case(question, names, casing))
        for question in made
        if question and _is_certain(question, heading, text) and not _is_odd(question)
    ]


def _is_odd(question: str) -> bool:
    """Return whether a question names neither a task nor a thing, like "How do I serve and offline?"."""
    second = re.match(r"How do I \w+ and (\w+)", question)
    return bool(PHRASES["odd"].search(question) or (second and second[1] not in VERBS))


def _from_command(text: str) -> str:
    match = _COMMAND.search(text)
    return f"How do I {match['clause']}?" if match and match["clause"].split()[0] in VERBS else ""


def _from_task(heading: str, text: str) -> str:
    """Return "How do I draw a circle?" for "Draw a Circle" or "Drawing Circles", if the text says "to draw"."""
    first, _, rest = heading.partition(" ")
    stem = first.lower().removesuffix("ing")
    forms = (stem,) if stem == first.lower() else (stem, f"{stem}e", stem[:-1])
    verbs = [form for form in forms if form.isalpha() and re.search(rf"(?:to|can|you) {form} (?:an?|the|your) ", text)]
    return f"How do I {verbs[0]} {rest}?" if verbs and rest else ""


def _is_certain(question: str, heading: str, text: str) -> bool:
    """Return False if a noun was read as a verb: "How do I aggregate functions?" from "Aggregate Functions".

    A heading that begins with a base form counts as a task if its text uses the word as a verb.
    """
    start = re.match(r"How do I (\w+)", question)
    verb = start[1] if start else ""
    if not verb or not re.search(rf"^(?:[\W\d]|step )*{verb}\b", heading, re.IGNORECASE):
        return True
    return bool(re.search(rf"\b(?:to|can|you|we|must|should|and|or|then)\s+{verb}\b", text, re.IGNORECASE))


class Casing:
    """Recognizes names among capitalized words by how a collection writes them inside sentences."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._written: Counter[str] = Counter()
        for text in texts:
            self._written.update(re.findall(r"(?<=[a-z,] )[A-Za-z][a-z]+", text))

    def is_name(self, word: str) -> bool:
        """Return whether a capitalized `word` keeps its capital inside a sentence."""
        forms = (word, f"{word}s", word.removesuffix("s"))
        return sum(self._written[one] for one in forms) > sum(self._written[one.lower()] for one in forms)


def _in_sentence_case(question: str, text: str, casing: Casing) -> str:
    """Return the question with words in lower case that are capitalized only in headings."""

    def lowered(match: re.Match[str]) -> str:
        word, before, after = match[0], question[: match.start()].split(), question[match.end() :].strip(" ?").split()
        pairs = [f"{one} {word}" for one in before[-1:]] + [f"{word} {one}" for one in after[:1]]
        is_part = any(pair.istitle() and pair in text for pair in pairs)  # Ray Core
        return word if is_part or casing.is_name(word) else word.lower()

    return re.sub(r"(?<=[ -])[A-Z][a-z]+\b(?!['’])", lowered, question)


def _score(question: str, about: frozenset[str], section: SectionStart) -> float:
    """Return how good an example a question is; 0 or less means unsuitable."""
    telling = about - _VAGUE
    if len(question) > _MOST_CHARACTERS or _CODE.search(question[:-1]) or not telling - VERBS:
        return 0.0
    place = " ".join((section.url, section.title))
    score = 0.3 * bool(PHRASES["guide"].search(place)) - 0.3 * bool(PHRASES["reference"].search(place))
    score += {1: 0.4, 2: 0.3, 3: 0.1}.get(len(section.headings), 0.0)
    asks = question.startswith("How") or section.headings[-1] == question
    score += 0.3 * (len(telling) > 1) + 0.3 * asks + 0.2 * question.startswith("What")
    score -= 0.3 * bool(re.match(r"How do I \w+ the\b|(?!How|What|When|Which)", question))
    score -= 0.1 * max(0, len(question.split()) - 9)
    return score - 1.0 * bool(PHRASES["aside"].search(" ".join((section.url, section.title, *section.headings))))


def _overlap(example: ExampleQuestion, chosen: Sequence[ExampleQuestion]) -> float:
    """Return how much an example repeats the chosen ones: their words, their part of the site, their form."""
    lost = 0.0
    for other in chosen:
        lost += 1.2 * len(example.about & other.about) / max(1, min(len(example.about), len(other.about)))
        lost += 0.3 * (example.url == other.url)
        lost += 0.3 * (example.url.rpartition("/")[0] == other.url.rpartition("/")[0]) / len(chosen)
        lost += 0.5 * (example.question.split()[:2] == other.question.split()[:2]) / len(chosen)
    return lost
