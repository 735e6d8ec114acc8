"""Compares the texts of pages by compact sketches, to find pages with the same text.

A sketch consists of the title and the smallest hashes of all runs of a few words (Broder's bottom-k sketch). The
overlap of two sketches estimates the overlap of the texts. A sketch takes a few hundred bytes. Independent of URLs and
the store.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from heapq import nsmallest

from pipelines.indexing.reading.read import read_page
from pipelines.page.flow import flat_blocks
from pipelines.page.tree import Document
from pipelines.records import Page

# With 64 hashes, the standard deviation of an estimated share of 0.8 is 5%.
HASHES, RUN = 64, 4
# Two versions of a page, one naming the other as canonical, share more than this. Two pages from one template with
# different subjects ("To install the server …") share a third.
SAME_SHARE = 0.8
_WORD = re.compile(r"\w+")
_SIZE = 8  # characters of a hash


def sketch_page(page: Page) -> str:
    """Return the sketch of the readable text of `page`. Raises UnreadablePage."""
    return sketch_of(read_page(page))


def sketch_of(document: Document) -> str:
    """Return the sketch of a document's text, without the parts that readers do not see."""
    headings = (heading for section in document.sections for heading in section.headings[:1])
    hashes = nsmallest(HASHES, set(map(_hash, _runs(document))))
    return _hash(next(headings, document.label)) + "".join(hashes)


def is_same(one: str, other: str) -> bool:
    """Return whether two sketches have the same title and, apart from small changes, the same text."""
    if one[:_SIZE] != other[:_SIZE]:
        return False
    left, right = _hashes(one), _hashes(other)
    least = nsmallest(HASHES, left | right)
    return sum(each in left and each in right for each in least) >= SAME_SHARE * len(least)


def _runs(document: Document) -> Iterator[str]:
    texts = (block.text for section in document.sections for block in flat_blocks(section.content))
    words = [word for text in texts for word in _WORD.findall(text.casefold())]
    return (" ".join(words[start : start + RUN]) for start in range(max(min(1, len(words)), len(words) - RUN + 1)))


def _hash(text: str) -> str:
    return blake2b(" ".join(text.split()).encode(), digest_size=_SIZE // 2).hexdigest()


def _hashes(sketch: str) -> set[str]:
    return {sketch[start : start + _SIZE] for start in range(_SIZE, len(sketch), _SIZE)}
