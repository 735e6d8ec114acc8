"""MkDocs and its Material theme: marks of annotations in comments of code, an `mkdocs.yml`."""

import re

from bs4 import BeautifulSoup


def rewrite(soup: BeautifulSoup) -> None:
    """Write the mark of an annotation as its number."""
    for comment in soup.select("code span[class^=c]"):
        if comment.string and ")!" in comment.string:
            comment.string = re.sub(r"\((\d+)\)!", r"(\1)", comment.string)
