"""What a reader of Markdown sees and copies, without active links to other hosts: what a filter of answers has to keep.

Knows Markdown as markdown-it reads it; nothing of the filter.
"""

import re
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.page.parser import keep_short_rows

_PARSER = keep_short_rows(MarkdownIt("commonmark").enable(["table", "strikethrough"]))
# A URL that a reader's software may open, or what is put in its place, with the parentheses in which a filter shows the
# target of a link.
_URL = re.compile(
    r"(?i)\(link removed\)|"
    r"\s?\(?(?:(?:https?|s?ftps?|wss?|mailto):[\w/\\]|www\.)[^\s<>\"'`|]*|(?<![:\w/\\])//\w[^\s<>\"'`|]*"
)


def kept(markdown: str, host: str) -> list[str]:
    """Return the parts of a text that must not change: listings letter for letter, lines without white space.

    Left out is every URL that does not begin with `host`, whether it is a link's target or written out.
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
