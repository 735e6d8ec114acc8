"""Removes from listings what a reader does not see, or sees beside them.

mdBook hides lines that only the compiler needs, MkDocs Material marks annotations, VitePress names the language.
TypeDoc's signatures are listings as well.
"""

import re

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.elements import become_listing, drop, lines_of, with_class

_HIDDEN = etree.XPath(".//code//span[@class='boring'] | .//div[starts-with(@class,'language-')]/span[@class='lang']")
_COMMENTS = etree.XPath(".//code//span[starts-with(@class,'c')][contains(.,')!')]")
_SIGNATURES = with_class("tsd-signature", "div")
_MARK = re.compile(r"\((\d+)\)!")


def clean_listings(root: Element) -> None:
    """Drop hidden lines and names of languages, and write the mark of an annotation as its number."""
    drop(_HIDDEN(root))
    for signature in _SIGNATURES(root):
        become_listing(signature, lines_of(signature))
    for comment in _COMMENTS(root):
        comment.text = _MARK.sub(r"(\1)", comment.text or "")
