"""Describes the found but uncited sections of an answer by their sentences closest to the question."""

import itertools
from typing import Any

from pipelines.answering.grounding.words import content_words, words_of
from pipelines.answering.hits import snippet
from pipelines.answering.synthesis.passages import split_sentences
from pipelines.page.blocks import BlockKind, MarkdownBlock, read_blocks
from pipelines.page.stored import readable_text
from pipelines.records import Answer, Hit

FEW = 4  # the fewest words of a meaningful sentence, and the most sentences shown from a paragraph
LENGTH = 200  # characters shown: two lines on a page
HEAD = "| - |\n| --- |"  # a table head, so that the next line is read as a row


def describe_found(answer: Answer) -> list[dict[str, Any]]:
    """Return the source, title, headings and closest sentence of each found section that is not cited."""
    asked = next(iter(answer.queries), answer.question)
    return [name_section(hit) | {"snippet": closest_sentence(asked, hit)} for hit in answer.also_found]


def name_section(hit: Hit) -> dict[str, Any]:
    """Return the fields that identify the section of a hit."""
    return {"source": hit.source, "title": hit.title, "headings": hit.headings}


def closest_sentence(question: str, hit: Hit) -> str:
    """Return the item, row or sentence (with the ones after it) of a hit that has the most words of the question."""
    asked = content_words(question)
    texts = list(itertools.chain(*map(_texts, read_blocks(hit.text))))
    told = [one for one in texts if not one[0].endswith(":")] or texts
    return snippet(max(told, key=lambda one: len(asked & words_of(one[0])), default=("", ""))[1], LENGTH)


def _texts(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return the parts of a block that may match a question, each with the text to show for it."""
    match block.kind:
        case BlockKind.CODE:
            texts = []
        case BlockKind.LIST:
            plain = [readable_text(item).partition("\n")[0] for item in block.items]
            texts = [text.partition(" ")[2] for text in plain]  # the text after its marker
        case BlockKind.TABLE:
            texts = [readable_text(f"{HEAD}\n{row}").rpartition("\n")[2] for row in block.rows[2:]]
        case BlockKind.NOTE:
            said = "\n".join(line.lstrip("> ") for line in block.text.split("\n"))
            return [text for one in read_blocks(said) for text in _texts(one)]
        case _:
            sentences = [sentence for sentence in split_sentences(block.plain) if len(words_of(sentence)) >= FEW]
            return [(sentence, " ".join(sentences[n : n + FEW])) for n, sentence in enumerate(sentences)]
    return [(text, text) for text in texts]
