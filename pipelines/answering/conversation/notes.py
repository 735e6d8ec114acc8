"""Says what an answer begins with: the search that was made instead, and what may mislead."""

from pipelines.answering.grounding.words import content_words
from pipelines.answering.language import is_foreign, reads_only_english
from pipelines.answering.retrieval.search import Retrieval


def make_notes(asked: str, unclear: str, retrieval: Retrieval, astray: str = "") -> tuple[str, ...]:
    """Return the notes on a question: `unclear` are words of it that nothing before it explains.

    `astray` is what it goes on about, if nothing that was found is about that.
    """
    notes = list(note_search(asked, retrieval.question))
    if unclear:
        notes.append(f'I can\'t tell what "{unclear}" refers to. Ask the whole question in one message.')
    if astray and retrieval.hits:
        notes.append(f'Nothing that was found is about "{astray}".')
    model = retrieval.index.settings.model
    if reads_only_english(model) and is_foreign(retrieval.question):
        notes.append(_language_note(model, retrieval))
    return tuple(notes)


def note_search(asked: str, searched: str) -> tuple[str, ...]:
    """Return the note on what was searched for, if that is not what was asked."""
    return (f"Searched for: {searched}",) if content_words(asked) != content_words(searched) else ()


def _language_note(model: str, retrieval: Retrieval) -> str:
    elsewhere = any(hit.language and not hit.language.lower().startswith("en") for hit in retrieval.hits)
    advice = "" if elsewhere else " Asked in English, it finds more."
    return (
        f"This question does not seem to be in English, the only language that the embedding model of this collection "
        f"({model}) reads, so it was searched for mostly by its words.{advice}"
    )
