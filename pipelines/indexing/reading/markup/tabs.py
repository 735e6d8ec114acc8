"""Puts the label of each tab with its content, because a chunk holds several tabs.

Labels and panels belong together by ARIA's roles (Docusaurus, sphinx-tabs, Starlight, GitBook) or by the class of the
set (MkDocs Material, sphinx-design, sphinx-inline-tabs, VitePress, Hugo Book).
"""

from collections.abc import Iterator, Sequence

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.elements import classes, drop
from pipelines.indexing.reading.text import as_paragraph

LABEL = "data-tab-label"  # the attribute of a panel that holds its label

_SETS = frozenset(["tabbed-set", "sd-tab-set", "tab-set", "vp-code-group", "book-tabs"])
_PANELS = frozenset(["tabbed-block", "sd-tab-content", "tab-content", "book-tabs-content"])
_TAB_LISTS = etree.XPath(".//*[@role='tablist']")
_TABS = etree.XPath(".//*[@role='tab']")
_TAB_PANELS = etree.XPath(".//*[@role='tabpanel']")


def label_tabs(root: Element) -> None:
    """Give each panel of a set of tabs its label as the attribute LABEL, and drop the list of labels."""
    for tab_list in _TAB_LISTS(root):
        labels = _TABS(tab_list)
        _label(labels, _panels_of(tab_list, labels))
        drop([tab_list])
    for tab_set in root.iter("div"):
        if not _SETS.isdisjoint(classes(tab_set)):
            labels = [label for label in _own(tab_set, "label") if label.get("for")]
            _label(labels, list(_own_panels(tab_set)))
            drop(labels)


def _label(labels: Sequence[Element], panels: Sequence[Element]) -> None:
    if len(labels) != len(panels):
        return
    for label, panel in zip(labels, panels, strict=True):
        panel.set(LABEL, as_paragraph("".join(label.itertext())).rstrip(":").replace("\n", " "))


def _panels_of(tab_list: Element, tabs: Sequence[Element]) -> list[Element]:
    """Return the panels of a list of tabs: those that it names, else those beside it."""
    holder = tab_list.getparent()
    while holder is not None and not _TAB_PANELS(holder):
        holder = holder.getparent()
    if holder is None:
        return []
    panels = _TAB_PANELS(holder)
    named = {panel.get("id"): panel for panel in panels if panel.get("id")}
    controlled = [tab.get("aria-controls") for tab in tabs]
    if len(set(controlled)) == len(tabs) and all(name in named for name in controlled):
        return [named[name] for name in controlled]
    return [panel for panel in panels if panel.getparent() is panels[0].getparent()]


def _own(tab_set: Element, *tags: str) -> Iterator[Element]:
    """Yield the descendants of `tab_set` that belong to no set inside it."""
    for element in tab_set.iterdescendants(*tags):
        holder = next(up for up in element.iterancestors("div") if not _SETS.isdisjoint(classes(up)))
        if holder is tab_set:
            yield element


def _own_panels(tab_set: Element) -> Iterator[Element]:
    for element in _own(tab_set, "div"):
        names = classes(element)
        parent = element.getparent()
        if not _PANELS.isdisjoint(names) or (parent is not None and "blocks" in classes(parent)):
            yield element
        elif "tabbed-content" in names and parent is tab_set and element.find("div[@class='tabbed-block']") is None:
            yield element  # the first markup of the extension
