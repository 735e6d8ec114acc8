"""Says what readers see in their language: each file here is one, en.yaml says how they are made.

`answer` has what answers say beside their own text, `launcher` what the widget shows before it is opened, `page` the
other texts of the page and the widget.
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


def join(texts: list[str], language: str) -> str:
    """Return sentences one after the other: Chinese and Japanese have no space between them."""
    return ("" if language in ("ja", "zh") else " ").join(texts)


@cache
def read_texts(language: str) -> Mapping[str, Any]:
    """Return all texts of one of LANGUAGES, by part and name."""
    return read_table(f"{__name__}.{language}")
