"""Detects the language of a question or page, and recognizes English-only embedding models by name.

A script tells the language, or py3langid does for Latin letters. A language is named only if it is probable enough, so
that a short English question with code or names from other languages is not mistaken for another language.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from pipelines.text.languages import without_region
from pipelines.text.phrases import compile_phrases, read_table

_TABLE = read_table(__name__)
_LATIN: list[str] = _TABLE["latin"].split()
_PHRASES = compile_phrases(_TABLE)
_DISTINCTIVE: dict[str, frozenset[str]] = {tag: frozenset(letters) for tag, letters in _TABLE["telling"].items()}
_OTHER_SCRIPTS = frozenset(_TABLE["other_scripts"].split())
_OWN_SCRIPTS = {tag for own in _TABLE["scripts"].values() for tag in (own, *_TABLE["taken_for"].get(own, "").split())}
# The languages that `find_language` may return.
DETECTABLE = frozenset([*_LATIN, *_DISTINCTIVE, *_TABLE["scripts"].values()])
# Language codes (ISO 639-1); other two-letter parts of a path are not languages.
LANGUAGES = frozenset(_TABLE["languages"].split())
# Minimum share of letters in another script for a question to count as written in that script's language.
_OTHER_SCRIPT = 0.3
# Minimum share of letters specific to one language: a Ukrainian name does not make a Russian text Ukrainian.
_DISTINCTIVE_SHARE = 0.02
# Chosen with benchmarks/question_languages.py: benchmarks/results/language-of-questions.md. A language is named from
# _PROBABLE on; one other than English also needs English to be as improbable as _RARELY_ENGLISH. Below _NOT_ENGLISH, a
# text is not English, even if its language is unclear.
_PROBABLE, _RARELY_ENGLISH, _NOT_ENGLISH = 0.6, 0.03, 0.01
_ENOUGH = 2_000  # characters that tell a language
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|`[^`]*`')
_OF_CODE = frozenset(r"_.()[]{}<>=/\:@#$")
_CAMEL_CASE = re.compile(r"\A[^a-z]*+[a-z].*[A-Z]")


def is_foreign(question: str) -> bool:
    """Return whether `question` is certainly not in English."""
    return find_language(question) not in ("en", "")


def find_language(text: str) -> str:
    """Return the language of `text` (BCP 47), "und" if it is certainly not English but unclear, "" if unsure.

    A script maps to the language that most people write in it, unless letters specific to another language occur:
    Cyrillic means Russian, but Ukrainian if the text contains ї.
    """
    prose = _prose_of(unicodedata.normalize("NFC", text))
    other = [] if prose.isascii() else [letter for letter in filter(str.isalpha, prose) if _is_of_other_script(letter)]
    if len(other) >= 2 and len(other) >= _OTHER_SCRIPT * sum(map(str.isalpha, prose)):
        return _language_of_script(other)
    if not any(map(str.isalpha, prose)):
        return ""
    language, probability, english = _identify(prose[:_ENOUGH])
    if probability >= _PROBABLE and (language == "en" or english < _RARELY_ENGLISH):
        return language
    return "und" if english < _NOT_ENGLISH else ""


@lru_cache(1_000)  # several steps of a question ask for its language
def _identify(prose: str) -> tuple[str, float, float]:
    """Return the likeliest language of `prose`, its probability, and English's."""
    ranked = _identifier().rank(prose)
    language, probability = ranked[0]
    return str(language), probability, dict(ranked)["en"]


def load_identifier() -> None:
    """Load the model that tells languages in Latin letters, so that the first question need not wait for it."""
    _identifier()


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    loaded = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    loaded.set_languages([*_LATIN, *_TABLE["scripts"].values()])  # a Chinese question may have more Latin letters
    # `loaded` also holds the tables of its other languages, which are most of its memory.
    return LanguageIdentifier(
        loaded.nb_ptc,
        loaded.nb_pc,
        loaded.nb_classes,
        loaded.tk_nextmove,
        loaded.tk_output,
        norm_probs=True,
        tk_row=loaded.tk_row,
    )


def _prose_of(text: str) -> str:
    """Return the words of `text` that are neither code nor quoted, such as an error message; all if none are left."""
    words = [word for word in _QUOTED.sub(" ", text).split() if not _is_code(word)]
    return " ".join(words or [word for word in text.split() if not _is_code(word)])


@lru_cache(10_000)
def _is_of_other_script(letter: str) -> bool:
    return not unicodedata.name(letter, "LATIN").startswith("LATIN")


def _is_code(word: str) -> bool:
    """Return whether a word is code: my_list, a.b, camelCase, x=1."""
    inner = word.rstrip(".,:")
    if inner.isalpha() and (inner.islower() or inner.istitle()):  # most words
        return False
    return not _OF_CODE.isdisjoint(inner) or any(map(str.isdigit, inner)) or bool(_CAMEL_CASE.search(inner))


def same_language(one: str, other: str) -> bool:
    """Return whether two tags name the same language, like en, en-GB and en_US."""
    return without_region(one) == without_region(other)


def may_be_asked_in(asked_in: str, language: str) -> bool:
    """Return whether a question detected as `asked_in` may actually be in `language`: detected ru may be uk."""
    return same_language(asked_in, language) or without_region(language) in relatives_of(asked_in)


@cache
def relatives_of(language: str) -> tuple[str, ...]:
    """Return the languages whose texts may be detected as `language`: Ukrainian and others as Russian."""
    return tuple(_TABLE["taken_for"].get(without_region(language), "").split())


def _language_of_script(letters: Sequence[str]) -> str:
    scripts = {_script_of(letter) for letter in letters}
    language = next((language for script, language in _TABLE["scripts"].items() if script in scripts), "und")
    written = Counter(letter.lower() for letter in letters)
    told = {tag: sum(map(written.__getitem__, signs)) for tag, signs in _DISTINCTIVE.items()}
    likely = max(told, key=told.__getitem__)
    return (
        likely
        if likely in relatives_of(language) and told[likely] >= max(1, _DISTINCTIVE_SHARE * len(letters))
        else language
    )


def is_written_in(text: str, language: str) -> bool:
    """Return whether a language may be written in the script of most letters of `text`."""
    scripts = Counter(map(_script_of, filter(str.isalpha, text)))
    most = max(scripts, key=scripts.__getitem__, default="")
    tag, own = without_region(language), _TABLE["scripts"].get(most)
    if own:
        return tag in (own, *relatives_of(own))
    return tag not in _OWN_SCRIPTS and (tag in _OTHER_SCRIPTS) == (most != "LATIN")


def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0].split("-")[0]


def reads_only_english(model: str) -> bool:
    """Return whether the name of an embedding model identifies it as English-only."""
    name = model.rstrip("/").rpartition("/")[2].lower()
    return "multilingual" not in name and bool(_PHRASES["english_model"].match(name))
