"""Attaches the label of each tab to its content, because a chunk may contain several tabs.

Labels are matched with panels by ARIA roles, or in the way that a style sheet without scripts does: each label belongs
to a radio button, and there are as many panels as labels.
"""

from collections.abc import Sequence
from itertools import groupby, islice

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.text.cleaning import clean_page

LABEL = "data-tab-label"  # the attribute of a panel with its label

_TAB_LISTS = etree.XPath(".//*[@role='tablist']")
_TABS = etree.XPath(".//*[@role='tab']")
_TAB_PANELS = etree.XPath(".//*[@role='tabpanel']")
_RADIOS = etree.XPath(".//input[@type='radio'][@id][@name]")
_LABELS = etree.XPath(".//label[@for]")
_MOST = 100  # most elements next to the buttons of a set; a box with more is the page
_BOXES = ("div", "section", "article", "figure")  # tags of panels


def label_tabs(root: Element) -> None:
    """Set the attribute LABEL on each panel of a set of tabs, and mark the list of labels as navigation."""
    for tab_list in _TAB_LISTS(root):
        labels = _TABS(tab_list)
        _label(labels, _panels_of(tab_list, labels))
        tab_list.tag = "nav"
    label_of = {label.get("for"): label for label in _LABELS(root)}
    radios = sorted(_RADIOS(root), key=lambda radio: radio.get("name"))
    for _, group in groupby(radios, key=lambda radio: radio.get("name")):
        buttons = list(group)
        labels = [label for button in buttons if (label := label_of.get(button.get("id"))) is not None]
        if len(labels) == len(buttons) and (panels := _panels_next_to([*buttons, *labels], labels)):
            _label(labels, panels)
            for control in (*labels, *buttons):
                control.tag = "nav"


def _label(labels: Sequence[Element], panels: Sequence[Element]) -> None:
    """Label the panels and make them plain boxes of their section, without ids: nobody links to a panel."""
    if len(labels) != len(panels):
        return
    for label, panel in zip(labels, panels, strict=True):
        panel.set(LABEL, _name(label))
        panel.tag = "div"
        panel.attrib.pop("id", None)


def _name(label: Element) -> str:
    """Return the words of `label`. If it shows only a glyph, these are the words shown on hover."""
    texts = ("".join(label.itertext()), label.get("title"), label.get("aria-label"))
    names = (" ".join(clean_page(text or "").split()).rstrip(":") for text in texts)
    return next((name for name in names if any(map(str.isalnum, name))), "")


def _panels_of(tab_list: Element, tabs: Sequence[Element]) -> list[Element]:
    """Return the panels of a tab list: those that its tabs reference, or else the panels next to it."""
    panels: list[Element] = next(filter(None, map(_TAB_PANELS, tab_list.iterancestors())), [])
    named = {panel.get("id"): panel for panel in panels if panel.get("id")}
    controlled = [tab.get("aria-controls") for tab in tabs]
    if len(set(controlled)) == len(tabs) and all(name in named for name in controlled):
        return [named[name] for name in controlled]
    return [panel for panel in panels if panel.getparent() is panels[0].getparent()]


def _panels_next_to(controls: Sequence[Element], labels: Sequence[Element]) -> list[Element]:
    """Return the panels that the buttons and labels in `controls` select: as many boxes as labels; none for a form."""
    holder = _common_parent(controls)
    others = _others(holder, controls)
    if not others and (outer := holder.getparent()) is not None:
        others = _others(outer, controls)
    for found in (others, list(others[0]) if len(others) == 1 else [], _after(labels)):
        boxes = [box for box in found if box.tag in _BOXES]
        if len(boxes) != len(labels):
            boxes = [box for box in boxes if len(box) or (box.text or "").strip()]
        if len(boxes) == len(labels):
            return boxes
    return []


def _common_parent(elements: Sequence[Element]) -> Element:
    """Return the innermost element that contains all `elements`."""
    shared = set.intersection(*(set(element.iterancestors()) for element in elements))
    return next(holder for holder in elements[0].iterancestors() if holder in shared)


def _others(holder: Element, controls: Sequence[Element]) -> list[Element]:
    """Return the children of `holder` that contain none of `controls`."""
    ways = {step for control in controls for step in (control, *control.iterancestors())}
    return list(islice((child for child in holder if child not in ways), _MOST))


def _after(labels: Sequence[Element]) -> list[Element]:
    """Return the element after each label, if each pair has its own box. A list made of these boxes becomes divs."""
    boxes, found = [label.getparent() for label in labels], [label.getnext() for label in labels]
    panels = [panel for panel in found if panel is not None]
    if len(panels) < len(labels) or len(set(boxes)) < len(labels):
        return []
    for box in boxes:
        if box is not None and box.tag == "li" and (items := box.getparent()) is not None:
            box.tag = items.tag = "div"
    return panels
