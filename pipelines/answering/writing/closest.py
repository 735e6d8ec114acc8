"""Describes the sections that an answer does not cite: what each says about the question."""

import itertools
from typing import Any

from pipelines.answering.hits import snippet
from pipelines.answering.synthesis.passages import split_sentences
from pipelines.lexical import STOP_TERMS, terms
from pipelines.markdown.blocks import BlockKind, MarkdownBlock, read_blocks
from pipelines.markdown.plain import plain_text
from pipelines.records import Answer, Hit

FEW = 4  # words of a sentence that may say something
LENGTH = 200  # characters of what is shown: two lines of a page


def describe_found(answer: Answer) -> list[dict[str, Any]]:
    """Return the source, title, headings and closest sentence of each section that was found and is not cited."""
    asked = next(iter(answer.queries), answer.question)
    return [
        {"source": hit.source, "title": hit.title, "headings": hit.headings, "snippet": closest_sentence(asked, hit)}
        for hit in answer.also_found
    ]


def closest_sentence(question: str, hit: Hit) -> str:
    """Return the sentence, item or row of a hit that has most words of the question, the first of them."""
    asked = frozenset(terms(question)) - STOP_TERMS
    texts = list(itertools.chain.from_iterable(map(_texts, read_blocks(hit.text))))
    told = [text for text in texts if not text.endswith(":")] or texts
    return snippet(max(told, key=lambda text: len(asked & frozenset(terms(text))), default=""), LENGTH)


def _texts(block: MarkdownBlock) -> list[str]:
    match block.kind:
        case BlockKind.CODE:
            return []
        case BlockKind.LIST:
            return [plain_text(item).lstrip("-*+ ").partition("\n")[0] for item in block.items]
        case BlockKind.TABLE:
            return [plain_text("\n".join([*block.rows[:2], row])).rpartition("\n")[2] for row in block.rows[2:]]
    return [sentence for sentence in split_sentences(block.plain) if len(sentence.split()) >= FEW]
