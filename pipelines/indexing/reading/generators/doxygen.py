"""Doxygen: members become sections with a signature, code fragments become listings.

A member is an empty `<a id>` followed by a heading and a box. Its signature is a table, and each line of code is a div.
"""

import re

from bs4 import BeautifulSoup, Tag

from pipelines.indexing.reading.html.soup import become_listing, listing


def rewrite(soup: BeautifulSoup) -> None:
    """Turn a page into plain HTML."""
    contents = soup.select_one("div.contents")
    if contents is None:
        return
    contents.name, contents["class"] = "main", ""
    for link in soup.find_all("a", string="More..."):
        link.decompose()
    for title in soup.select("div.headertitle div.title"):
        title.name = "h1"
        contents.insert(0, title)
    _drop_file_list(contents)
    for fragment in contents.select("div.fragment"):
        become_listing(fragment, "\n".join(line.get_text() for line in fragment.select("div.line")))
    for table in contents.select("table.memberdecls"):
        _rewrite_summary(table)
    for member in contents.select("div.memitem"):
        _rewrite_member(soup, member)


def _drop_file_list(contents: Tag) -> None:
    for line in contents.select("hr"):
        text, files = line.next_sibling, line.find_next_sibling()
        if isinstance(text, str) and text.startswith("The documentation for this ") and isinstance(files, Tag):
            text.extract()
            files.decompose()


def _rewrite_summary(table: Tag) -> None:
    """Move the heading of a member table before the table, and each member's description into the member's row."""
    for heading in table.select("tr.heading h2"):
        table.insert_before(heading)
    for row in table.select("tr.heading, tr[class^=memdesc]"):
        if "heading" not in row["class"] and isinstance(member := row.find_previous_sibling(), Tag):
            member.extend(row.select("td.mdescRight"))
        row.decompose()


def _rewrite_member(soup: BeautifulSoup, member: Tag) -> None:
    for signature in member.select("div.memproto"):
        words = " ".join(" ".join(signature.strings).split())
        words = re.sub(r" (?=[,)\]])|(?<=[(\[]) ", "", words).replace(" (", "(", 1)
        signature.replace_with(listing(soup, words))
    heading = member.find_previous_sibling()
    if isinstance(heading, Tag) and "memtitle" in heading.get_attribute_list("class"):
        target = heading.find_previous_sibling()
        member.name = "section"
        member.insert(0, heading)
        if isinstance(target, Tag) and target.name == "a" and target.get("id"):
            member["id"] = target["id"]
            target.decompose()
