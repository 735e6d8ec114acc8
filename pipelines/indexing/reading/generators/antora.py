"""Antora: tabs of Asciidoctor without ARIA roles, callout numbers in listings, the versions of a page."""

from bs4 import BeautifulSoup


def rewrite(soup: BeautifulSoup) -> None:
    """Turn a page into plain HTML."""
    for tab in soup.select(".tablist .tab"):
        tab["role"], tab["aria-controls"] = "tab", f"{tab.get('id')}--panel"
    for panel in soup.select(".tablist, .tabpanel"):
        panel["role"] = "tabpanel" if "tabpanel" in panel["class"] else "tablist"
    for place in soup.select(".colist tr"):
        place.name = "p"
        for number in place.select("td b"):
            number.string = f"({number.get_text()}) "
        for cell in place.select("td"):
            cell.unwrap()
