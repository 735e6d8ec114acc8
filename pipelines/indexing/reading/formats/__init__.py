"""Declares the document formats, with their suffixes, media types and limits, in one place.

The crawler, the folder source and the reader all use the table formats.yaml next to this folder. No parser is imported
here; `reading.read` maps each format to its function.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from pipelines.records import Page
from pipelines.text.phrases import read_table

# Of 5,012 pages of the Ray, Python and Postgres documentation, the largest has 2 MB (an index of all terms), and the
# largest with prose 0.6 MB. lxml parses 5 MB in 0.6 s.
MAX_BYTES = 5_000_000
TIMEOUT_S = 2.0
# Reading and cutting pages of 0.2 to 2 MB on five sites takes 0.2 to 1 s per MB, on a busy core twice as long.
SECONDS_PER_MB = 4.0
# Media types of servers that don't know the type: the file name decides, then the first bytes.
VAGUE_TYPES = (
    *("", "text/plain", "application/octet-stream", "binary/octet-stream"),
    *("unknown/unknown", "application/unknown"),
)


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A document format.

    `media_types` begins with the type under which pages are stored. `signatures` are the first bytes, in lower case,
    that identify a body; if they are `certain`, they override the media type. `links` is the link syntax of the format.
    `linked` is False for a format that sites link to only as the source of a page, so a crawl skips it. `weight` is the
    preference in the Accept header. A body of more than `max_bytes` is not read. Reading a body may take `limit_s` of
    its size.
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
        """Return the seconds of CPU time that reading a body of `size` bytes may take."""
        return self.timeout_s + SECONDS_PER_MB * size / 1e6


_PREAMBLE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->|<\?xml[^<>]*>)*", re.DOTALL | re.IGNORECASE)
_LONGEST_PREAMBLE = 4096

_NAMED = TypeAdapter(dict[str, DocumentFormat]).validate_python(read_table(__name__))
FORMATS = tuple(_NAMED.values())
HTML = _NAMED["html"]
XHTML = _NAMED["xhtml"]
MARKDOWN = _NAMED["markdown"]
MDX = _NAMED["mdx"]
PDF = _NAMED["pdf"]
RESTRUCTURED_TEXT = _NAMED["restructured_text"]
ASCIIDOC = _NAMED["asciidoc"]
NOTEBOOK = _NAMED["notebook"]
QUARTO = _NAMED["quarto"]
TEXT = _NAMED["text"]
# Dialects of these.
PYTHON_MARKDOWN = _NAMED["python_markdown"]
VUE_MARKDOWN = _NAMED["vue_markdown"]
KRAMDOWN = _NAMED["kramdown"]
BLACKFRIDAY = _NAMED["blackfriday"]
TEMPLATED_MARKDOWN = _NAMED["templated_markdown"]
MKDOCS_MACROS = _NAMED["mkdocs_macros"]
DOCUMENTER = _NAMED["documenter"]
DOCUSAURUS = _NAMED["docusaurus"]
DOCSIFY = _NAMED["docsify"]
MYST = _NAMED["myst"]
NBSPHINX = _NAMED["nbsphinx"]
MYST_NOTEBOOK = _NAMED["myst_notebook"]
# Formats from which generators build HTML pages; all but notebooks are texts.
SOURCE_TEXTS = (ASCIIDOC, MARKDOWN, MDX, QUARTO, RESTRUCTURED_TEXT)
SOURCES = (*SOURCE_TEXTS, NOTEBOOK)

_BY_SUFFIX = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
_BY_TYPE = {media_type: entry for entry in FORMATS for media_type in entry.media_types}


def format_of_name(name: str) -> DocumentFormat | None:
    """Return the format for the suffix of a path or file name, if known."""
    parts = name.rsplit("/", 1)[-1].lower().split(".")[1:]
    return next((_BY_SUFFIX[suffix] for suffix in (".".join(parts[-2:]), *parts[-1:]) if suffix in _BY_SUFFIX), None)


def format_of_type(media_type: str) -> DocumentFormat | None:
    """Return the format of a media type, if known. text/plain may hide any other format (see VAGUE_TYPES)."""
    return _BY_TYPE.get(media_type.strip().lower())


def format_of_body(body: bytes) -> DocumentFormat | None:
    """Return the format identified by the first bytes of `body`, if any; comments may come first."""
    preamble = _PREAMBLE.match(body, 0, _LONGEST_PREAMBLE)
    head = body[preamble.end() if preamble else 0 :][:100].lower()
    return next((entry for entry in FORMATS if entry.signatures and head.startswith(entry.signatures)), None)


def format_of_page(page: Page) -> DocumentFormat | None:
    """Return the format of a page, by its media type, else its file name, else its first bytes, else plain text.

    The later criteria apply only if the media type is vague; an unsupported type gives None. A certain signature
    overrides everything.
    """
    sniffed = format_of_body(page.body)
    if sniffed and sniffed.certain:
        return sniffed
    if page.content_type.strip().lower() not in VAGUE_TYPES:
        return format_of_type(page.content_type)
    return format_of_name(page.url.split("?", 1)[0]) or sniffed or TEXT


def accept_header() -> str:
    """Return the Accept header: all formats by their weights, and anything else last.

    Markdown is left out: the anchors in a page's Markdown version differ from the anchors that readers see.
    """
    types = (
        entry.media_type + (f";q={entry.weight:g}" if entry.weight < 1 else "")
        for entry in FORMATS
        if entry.suffixes and entry.linked and entry not in (MARKDOWN, MDX)
    )
    return ",".join([*types, "*/*;q=0.1"])
