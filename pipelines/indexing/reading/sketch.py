"""Tells pages whose texts are the same from pages whose texts are not, by a sketch of each.

A sketch is the title and the least hashes of all runs of a few words (Broder's bottom-k sketch): what two of them share
estimates what the texts share, and one takes some hundred bytes. Knows no URLs and no store.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from heapq import nsmallest

from pipelines.indexing.reading.read import read_page
from pipelines.page.flow import flat_blocks
from pipelines.page.tree import Document
from pipelines.records import Page

# With 64 hashes the share is known to 5 %, one standard deviation, where it is 0.8.
HASHES, RUN = 64, 4
# Two versions of a page, of which one names the other as canonical, share more than that; two pages of a template that
# say the same of different things ("To install the server …") share a third.
SAME_SHARE = 0.8
_WORD = re.compile(r"\w+")
_SIZE = 8  # characters of a hash


def sketch_page(page: Page) -> str:
    """Return the sketch of what can be read of `page`. Raises UnreadablePage."""
    return sketch_of(read_page(page))


def sketch_of(document: Document) -> str:
    """Return the sketch of a document's text, without what its readers do not see."""
    headings = (heading for section in document.sections for heading in section.headings[:1])
    hashes = nsmallest(HASHES, set(map(_hash, _runs(document))))
    return _hash(next(headings, document.label)) + "".join(hashes)


def is_same(one: str, other: str) -> bool:
    """Return whether the texts of two sketches are the same, but for small changes: under one title."""
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
