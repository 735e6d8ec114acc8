"""Rewrites Doxygen: members become sections with a signature, fragments become code.

A member is an empty `<a id>`, a heading and a box after it; its signature is a table, and code is a div for each line.
"""

import re

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.elements import become_listing, classes, drop, listing, move, with_class

_IS_DOXYGEN = etree.XPath(
    "boolean(//meta[@name='generator'][starts-with(@content,'Doxygen')] | //div[@class='headertitle'])"
)
_CONTENTS = with_class("contents", "div")
_TITLE = etree.XPath(".//div[@class='headertitle']//div[@class='title']")
_NOISE = etree.XPath(
    ".//span[@class='permalink'] | .//p[@class='definition'] | .//div[@class='ttc'] | .//span[@class='lineno'] | "
    ".//div[@class='ingroups'] | .//a[.='More...'] | .//tr[starts-with(@class,'separator')] | "
    ".//div[@class='dynheader' or @class='dyncontent' or @class='levels'] | .//span[@class='arrow' or @class='icona']"
)
_FRAGMENTS = with_class("fragment", "div")
_LINES = with_class("line", "div")
_SUMMARIES = with_class("memberdecls", "table")
_HEADINGS = etree.XPath(".//tr[@class='heading']//h2")
_MEMBERS = with_class("memitem", "div")
_SIGNATURE = with_class("memproto", "div")
_SOURCE_FILES = re.compile(r"The documentation for this .{1,40} was generated from the following files?:")


def rewrite_doxygen(root: Element) -> None:
    """Rewrite a Doxygen page; its contents become the main element, with the title as heading."""
    contents = next(iter(_CONTENTS(root)), None)
    if contents is None or not _IS_DOXYGEN(root):
        return
    contents.tag = "main"
    del contents.attrib["class"]
    drop(_NOISE(root))
    for title in _TITLE(root):
        title.tag = "h1"
        move(title, contents)
    _drop_file_list(contents)
    for fragment in _FRAGMENTS(contents):
        become_listing(fragment, "\n".join("".join(line.itertext()) for line in _LINES(fragment)))
    for table in _SUMMARIES(contents):
        _rewrite_summary(table)
    for member in _MEMBERS(contents):
        _rewrite_member(member)


def _drop_file_list(contents: Element) -> None:
    for line in contents.findall("hr"):
        if _SOURCE_FILES.match(line.tail or ""):
            line.tail = None
            drop(item for item in [line.getnext()] if item is not None and item.tag == "ul")


def _rewrite_summary(table: Element) -> None:
    """Put the heading of a table of members before it, and the description of a member into its row."""
    parent = table.getparent()
    for heading in _HEADINGS(table):
        if parent is not None:
            move(heading, parent, parent.index(table))
    for row in list(table.iter("tr")):
        before = row.getprevious()
        if row.get("class") == "heading":
            drop([row])
        elif (row.get("class") or "").startswith("memdesc") and before is not None:
            before.extend(cell for cell in list(row) if cell.get("class") == "mdescRight")
            drop([row])


def _rewrite_member(member: Element) -> None:
    heading = member.getprevious()
    target = heading.getprevious() if heading is not None else None
    for signature in _SIGNATURE(member):
        signature.addnext(listing(_signature(signature)))
        drop([signature])
    if heading is None or "memtitle" not in classes(heading):
        return
    member.tag = "section"
    move(heading, member)
    if target is not None and target.tag == "a" and (anchor := target.get("id")):
        member.set("id", anchor)
        drop([target])


def _signature(table: Element) -> str:
    words = " ".join(" ".join(table.itertext()).split())
    return re.sub(r" (?=[,)\]])|(?<=[(\[]) ", "", words).replace(" (", "(", 1)
