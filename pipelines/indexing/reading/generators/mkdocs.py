"""MkDocs and its Material theme: annotation marks in code comments, and an `mkdocs.yml`."""

import re

from bs4 import BeautifulSoup


def rewrite(soup: BeautifulSoup) -> None:
    """Replace the mark of an annotation by its number."""
    for comment in soup.select("code span[class^=c]"):
        if comment.string and ")!" in comment.string:
            comment.string = re.sub(r"\((\d+)\)!", r"(\1)", comment.string)
