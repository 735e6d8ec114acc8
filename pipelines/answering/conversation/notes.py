"""Says what an answer begins with: the search that was made instead, and what may mislead."""

from pipelines.answering.grounding.words import content_words
from pipelines.answering.retrieval.search import Retrieval
from pipelines.page.stored import plain_of
from pipelines.records import Hit
from pipelines.text.detection import is_foreign, reads_only_english, same_language
from pipelines.text.languages import ENGLISH, join, say


def make_notes(
    asked: str, unclear: str, retrieval: Retrieval, astray: str = "", language: str = ENGLISH
) -> tuple[str, ...]:
    """Return the notes on a question: `unclear` are words of it that nothing before it explains.

    `astray` is what it goes on about, if nothing that was found is about that.
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
    """Return the note on what was searched for, if that is not what was asked."""
    same = content_words(asked) == content_words(searched)
    return () if same else (say("searched", language, question=searched),)


def _is_foreign(hit: Hit) -> bool:
    """Return whether a hit is in another language than English, as its page or else its text says."""
    return not same_language(hit.language, "en") if hit.language else is_foreign(plain_of(hit))


def _language_note(model: str, retrieval: Retrieval, language: str) -> str:
    advice = [] if any(map(_is_foreign, retrieval.hits)) else [say("ask_in_english", language)]
    return join([say("reads_english", language, model=model), *advice], language)
