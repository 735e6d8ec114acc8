"""Extracts the text that a filter of answers must keep: everything except active links to other hosts.

Follows markdown-it's reading of Markdown and knows nothing about the filter.
"""

import re
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.page.parser import keep_short_rows

_PARSER = keep_short_rows(MarkdownIt("commonmark").enable(["table", "strikethrough"]))
# A URL that a reader's software may open, or its replacement, with the parentheses in which a filter shows a link's
# target.
_URL = re.compile(
    r"(?i)\(link removed\)|"
    r"\s?\(?(?:(?:https?|s?ftps?|wss?|mailto):[\w/\\]|www\.)[^\s<>\"'`|]*|(?<![:\w/\\])//\w[^\s<>\"'`|]*"
)


def kept(markdown: str, host: str) -> list[str]:
    """Return the parts of a text that must not change: listings verbatim, other lines without white space.

    Every URL that does not begin with `host` is left out, both as a link's target and in the text.
    """
    return [part for token in _PARSER.parse(markdown) for part in _parts(token, host)]


def _parts(token: Token, host: str) -> list[str]:
    if token.type in ("fence", "code_block", "html_block"):
        return [token.content]
    if token.type != "inline":
        return []
    inner = token.children or []
    targets = [str(each.attrs["href"]) for each in inner if each.type == "link_open"]
    own = [target for target in targets if target.startswith(host) or not urlsplit(target).scheme]
    line = " ".join(each.content for each in inner if each.content)
    return [re.sub(r"[\s().,]", "", _URL.sub("", line)), *own]
