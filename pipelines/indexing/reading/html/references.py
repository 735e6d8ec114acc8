"""Resolves what a page with a `<base>` refers to. Knows nothing of content."""

from itertools import islice
from urllib.parse import urljoin

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.links import base_of

_BASES = etree.XPath("//base[@href]")


def resolve_references(root: Element, url: str) -> None:
    """Make the links of the page at `url` relative to that URL where it has a `<base>` that they are relative to.

    A link to an element of the page stays one, although a browser takes it for one to the base, too: scripts and
    readers of such a site know better.
    """
    base = next((base_of(url, one.get("href", "")) for one in islice(_BASES(root), 1)), url)
    if base == url:
        return
    ids = {element.get("id") or element.get("name") for element in root.iter(etree.Element)}
    for link in root.iter("a", "area"):
        href = (link.get("href") or "").strip()
        if href and not (href.startswith("#") and (href == "#" or href[1:] in ids)):
            try:
                link.set("href", urljoin(base, href))
            except ValueError:
                continue
