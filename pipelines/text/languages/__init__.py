"""Says what readers see in their language: each file here is one, en.yaml says how they are made.

`answer` has what answers say within their own text, `launcher` what the widget shows before it is opened, `page` the
other texts of the page and the widget, which a terminal and a chat platform show too.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pipelines.text.phrases import read_table

ENGLISH = "en"
LANGUAGES = tuple(sorted(path.name[:-5] for path in files(__name__).iterdir() if path.name.endswith(".yaml")))


def without_region(tag: str) -> str:
    """Return the language of a BCP 47 tag, or of one with underscores: that of pt-BR and pt_BR is pt."""
    return tag.lower().replace("_", "-").partition("-")[0]


def choose_language(*wanted: str) -> str:
    """Return the first of the `wanted` languages (BCP 47) that there is a file for, else English."""
    return next((tag for tag in map(without_region, wanted) if tag in LANGUAGES), ENGLISH)


def say(name: str, language: str, **values: object) -> str:
    """Return what an answer says, with its values. Raises KeyError for a text or value that is not there."""
    text: str = read_texts(language)["answer"][name]
    return text.format(**values)


def say_beside(name: str, language: str, **values: object) -> str:
    """Return what a client says beside an answer: a text of the page, in the form for `n` where it has forms."""
    text = read_texts(language)["page"][name]
    form: str = text if isinstance(text, str) else text[plural_form(language, int(str(values["n"])))]
    return form.format(**values)


def plural_form(language: str, n: int) -> str:
    """Return the form that a text about `n` things has in a language, by Unicode's plural rules."""
    if language in ("ja", "ko", "zh"):
        return "other"
    if language in ("pl", "ru"):
        if n == 1 or (language == "ru" and n % 10 == 1 and n % 100 != 11):
            return "one"
        return "few" if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else "many"
    return "one" if n == 1 or (n == 0 and language in ("fr", "pt")) else "other"


def join(texts: list[str], language: str) -> str:
    """Return sentences one after the other: Chinese and Japanese have no space between them."""
    return ("" if language in ("ja", "zh") else " ").join(texts)


@cache
def read_texts(language: str) -> Mapping[str, Any]:
    """Return all texts of one of LANGUAGES, by part and name."""
    return read_table(f"{__name__}.{language}")
