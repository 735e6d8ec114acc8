"""Writes the notes at the start of an answer: the search made instead, and possible misunderstandings."""

from pipelines.answering.grounding.words import content_words
from pipelines.answering.retrieval.search import Retrieval
from pipelines.page.stored import plain_of
from pipelines.records import Hit
from pipelines.text.detection import is_foreign, reads_only_english, same_language
from pipelines.text.languages import ENGLISH, join, say


def make_notes(
    asked: str, unclear: str, retrieval: Retrieval, astray: str = "", language: str = ENGLISH
) -> tuple[str, ...]:
    """Return the notes on a question; no previous turn explains its `unclear` words.

    `astray` is the subject that the follow-up continues, if no hit is about it.
    """
    notes = list(note_search(asked, retrieval.question, language))
    if unclear:
        notes.append(say("unclear", language, words=unclear))
    if astray and retrieval.hits:
        notes.append(say("astray", language, words=astray))
    model = retrieval.index.settings.model
    if reads_only_english(model) and is_foreign(retrieval.question):
        notes.append(_language_note(model, retrieval, language))
    return tuple(notes)


def note_search(asked: str, searched: str, language: str = ENGLISH) -> tuple[str, ...]:
    """Return a note with the query that was searched, if it differs from the question."""
    same = content_words(asked) == content_words(searched)
    return () if same else (say("searched", language, question=searched),)


def _is_foreign(hit: Hit) -> bool:
    """Return whether a hit isn't English, according to its page's language or, without one, its text."""
    return not same_language(hit.language, "en") if hit.language else is_foreign(plain_of(hit))


def _language_note(model: str, retrieval: Retrieval, language: str) -> str:
    advice = [] if any(map(_is_foreign, retrieval.hits)) else [say("ask_in_english", language)]
    return join([say("reads_english", language, model=model), *advice], language)
