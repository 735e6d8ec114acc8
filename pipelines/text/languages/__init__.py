"""Provides the texts that readers see, with one YAML file per language; en.yaml explains the format.

`answer` contains texts within an answer, and `launcher` the texts of the closed widget. `page` contains the other texts
of the page and the widget, which terminals and chat platforms use too.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pipelines.text.phrases import read_table

ENGLISH = "en"
LANGUAGES = tuple(sorted(path.name[:-5] for path in files(__name__).iterdir() if path.name.endswith(".yaml")))


def without_region(tag: str) -> str:
    """Return the language of a BCP 47 tag, also if written with underscores: pt for pt-BR and pt_BR."""
    return tag.lower().replace("_", "-").partition("-")[0]


def choose_language(*wanted: str) -> str:
    """Return the first of the `wanted` languages (BCP 47) for which a file exists, else English."""
    return next((tag for tag in map(without_region, wanted) if tag in LANGUAGES), ENGLISH)


def say(name: str, language: str, **values: object) -> str:
    """Return a text used within answers, with its values filled in. Raises KeyError for a missing text or value."""
    text: str = read_texts(language)["answer"][name]
    return text.format(**values)


def say_beside(name: str, language: str, **values: object) -> str:
    """Return a text that a client shows with an answer, in the plural form for `n` if it has forms."""
    text = read_texts(language)["page"][name]
    form: str = text if isinstance(text, str) else text[plural_form(language, int(str(values["n"])))]
    return form.format(**values)


def plural_form(language: str, n: int) -> str:
    """Return the plural category of `n` in a language, by Unicode's plural rules."""
    if language in ("ja", "ko", "zh"):
        return "other"
    if language in ("pl", "ru"):
        if n == 1 or (language == "ru" and n % 10 == 1 and n % 100 != 11):
            return "one"
        return "few" if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else "many"
    return "one" if n == 1 or (n == 0 and language in ("fr", "pt")) else "other"


def join(texts: list[str], language: str) -> str:
    """Join sentences; Chinese and Japanese have no space between them."""
    return ("" if language in ("ja", "zh") else " ").join(texts)


@cache
def read_texts(language: str) -> Mapping[str, Any]:
    """Return all texts of one of LANGUAGES, by part and name."""
    return read_table(f"{__name__}.{language}")
