"""The document formats: their suffixes, media types and limits, declared once.

Crawler, folder and reader decide by the table formats.yaml beside this folder. No parser is loaded: `reading.read`
names the function for each format.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from pipelines.records import Page
from pipelines.text.phrases import read_table

# The largest of 5,012 pages of the Ray, Python and Postgres documentation has 2 MB (an index of all terms), the
# largest with text of its own 0.6 MB; 5 MB take lxml 0.6 s.
MAX_BYTES = 5_000_000
TIMEOUT_S = 2.0
# Pages of 0.2 to 2 MB on five sites take 0.2 to 1 s a MB to be read and cut, on a busy core twice as long.
SECONDS_PER_MB = 4.0
# Media types of servers that do not know: the file name decides, then the first bytes.
VAGUE_TYPES = (
    *("", "text/plain", "application/octet-stream", "binary/octet-stream"),
    *("unknown/unknown", "application/unknown"),
)


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """One format.

    `media_types` begins with the type that pages are stored with. `signatures` are the first bytes, in lower case,
    that give a body away; where they are `certain` they win over the media type. `links` is the syntax in which a page
    names other pages. `linked` is False for a format that a site links to only as the source of a page, so that a crawl
    leaves it. `weight` is the preference in the header Accept. A body of more than `max_bytes` is not read, and reading
    may take `limit_s` of its size.
    """

    media_types: tuple[str, ...]
    suffixes: tuple[str, ...] = ()
    signatures: tuple[bytes, ...] = ()
    certain: bool = False
    links: Literal["html", "markdown", ""] = ""
    linked: bool = True
    weight: float = 1.0
    max_bytes: int = MAX_BYTES
    timeout_s: float = TIMEOUT_S

    @property
    def media_type(self) -> str:
        return self.media_types[0]

    def limit_s(self, size: int) -> float:
        """Return the seconds of processor time that reading a body of `size` bytes may take."""
        return self.timeout_s + SECONDS_PER_MB * size / 1e6


_PREAMBLE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->|<\?xml[^<>]*>)*", re.DOTALL | re.IGNORECASE)
_LONGEST_PREAMBLE = 4096

FORMATS = tuple(TypeAdapter(dict[str, DocumentFormat]).validate_python(read_table(__name__)).values())
HTML, XHTML, MARKDOWN, MDX, PDF, RESTRUCTURED_TEXT, ASCIIDOC, NOTEBOOK, TEXT, *_DIALECTS = FORMATS
PYTHON_MARKDOWN, VUE_MARKDOWN, MYST, MYST_NOTEBOOK = _DIALECTS
# Of these generators make pages of HTML.
SOURCES = (ASCIIDOC, MARKDOWN, MDX, NOTEBOOK, RESTRUCTURED_TEXT)

_BY_SUFFIX = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
_BY_TYPE = {media_type: entry for entry in FORMATS for media_type in entry.media_types}


def format_of_name(name: str) -> DocumentFormat | None:
    """Return the format that the suffix of a path or file name stands for, if it is known."""
    parts = name.rsplit("/", 1)[-1].lower().split(".")[1:]
    return next((_BY_SUFFIX[suffix] for suffix in (".".join(parts[-2:]), *parts[-1:]) if suffix in _BY_SUFFIX), None)


def format_of_type(media_type: str) -> DocumentFormat | None:
    """Return the format of a media type, if it is known; text/plain may be any other too (see VAGUE_TYPES)."""
    return _BY_TYPE.get(media_type.strip().lower())


def format_of_body(body: bytes) -> DocumentFormat | None:
    """Return the format that the first bytes of `body` give away, if they do; comments may stand before them."""
    preamble = _PREAMBLE.match(body, 0, _LONGEST_PREAMBLE)
    head = body[preamble.end() if preamble else 0 :][:100].lower()
    return next((entry for entry in FORMATS if entry.signatures and head.startswith(entry.signatures)), None)


def format_of_page(page: Page) -> DocumentFormat | None:
    """Return the format of a page: its media type; where that is vague its name, then its beginning, then text.

    None for a media type that is not read. A certain signature wins over all.
    """
    sniffed = format_of_body(page.body)
    if sniffed and sniffed.certain:
        return sniffed
    if page.content_type.strip().lower() not in VAGUE_TYPES:
        return format_of_type(page.content_type)
    return format_of_name(page.url.split("?", 1)[0]) or sniffed or TEXT


def accept_header() -> str:
    """Return the value of Accept: all formats by their weights, anything else at last.

    Markdown is not among them: the anchors of a page's twin in Markdown are not those of the page that readers see.
    """
    types = (
        entry.media_type + (f";q={entry.weight:g}" if entry.weight < 1 else "")
        for entry in FORMATS
        if entry.suffixes and entry.linked and entry not in (MARKDOWN, MDX)
    )
    return ",".join([*types, "*/*;q=0.1"])
