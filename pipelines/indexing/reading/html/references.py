"""Resolves the references of a page with a `<base>`. Independent of content."""

from urllib.parse import urljoin

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.links import base_of


def resolve_references(root: Element, url: str) -> None:
    """Resolve the links of the page at `url` against its `<base>`, if it has one.

    Links to an element of the page stay unchanged. A browser would resolve them against the base, too, but the scripts
    and readers of these sites expect them to stay on the page.
    """
    base = next((base_of(url, href) for one in root.iter("base") if (href := one.get("href")) is not None), url)
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
