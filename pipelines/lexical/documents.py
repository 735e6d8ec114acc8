"""Documents of a BM25 folder: chunks, and a marker with the index and revision of a commit."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import tantivy
from tantivy import Query

from pipelines.lexical.terms import plain_words, with_name_parts
from pipelines.page.stored import plain_of
from pipelines.records import Hit

# Increase this when the terms of a chunk change; folders with an older version are rebuilt.
VERSION = 5

# The score is the weighted sum of BM25 over four fields. Chosen on the Ray documentation (263 pages, 2,203 chunks) by
# the share of sources among the first 5: with headings 0.5 it is 0.95 for generated and 0.66 for user questions; with
# 1.0 (and 0.5 for title and url) 0.93 and 0.57; with only text 0.91 and 0.69. Users rarely use a heading's words, but
# code names often match them.
BOOSTS: Mapping[str, float] = {"text": 1.0, "headings": 0.5, "title": 0.1, "url": 0.1}

# Fields for filters, as whole values: they select chunks and add no score.
FILTERED = ("tag", "version", "language", "address")

# The plain words in lower case, unstemmed: used to correct a question's spelling.
WORDS = "words"

MARKER = "#marker"


@dataclass(frozen=True, slots=True)
class Marker:
    """The index and revision of a commit."""

    index: int
    revision: int


def make_schema() -> tantivy.Schema:
    """Return the schema of a folder."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("chunk_id", stored=True, tokenizer_name="raw", index_option="basic")
    for field in BOOSTS:
        builder.add_text_field(field, tokenizer_name="names", index_option="freq")
    builder.add_text_field(WORDS, tokenizer_name=WORDS, index_option="basic")
    for field in FILTERED:
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("marker", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def make_document(hit: Hit) -> tantivy.Document:
    """Return a chunk as a document."""
    text = plain_of(hit)
    return tantivy.Document(
        chunk_id=hit.chunk_id,
        text=with_name_parts(text, hit.language),
        headings=with_name_parts(" ".join(hit.headings), hit.language),
        title=with_name_parts(hit.title, hit.language),
        url=with_name_parts(_url_words(hit)),
        words=plain_words(" ".join((text, *hit.headings, hit.title))),
        tag=list(hit.tags),
        version=[hit.version] if hit.version is not None else [],
        language=hit.language,
        address=[hit.url, *(hit.url[: slash.end()] for slash in re.finditer("/", hit.url))],
    )


def commit(writer: tantivy.IndexWriter, marker: Marker) -> None:
    """Commit with the marker as a document of the same commit, so that both become visible together."""
    text = json.dumps({"version": VERSION, "index": marker.index, "revision": marker.revision})
    writer.delete_documents_by_term("chunk_id", MARKER)
    writer.add_document(tantivy.Document(chunk_id=MARKER, marker=text))
    writer.commit()


def read_marker(searcher: tantivy.Searcher, schema: tantivy.Schema) -> Marker | None:
    """Return the marker of a commit, if it has one. Raises ValueError for a marker with another version."""
    query = Query.term_query(schema, "chunk_id", MARKER, index_option="basic")
    hits = searcher.search(query, 1, count=False).hits
    if not hits:
        return None
    marker = json.loads(str(searcher.doc(hits[0][1]).get_first("marker")))
    if marker["version"] != VERSION:
        raise ValueError(f"its version is {marker['version']}, not {VERSION}")
    return Marker(marker["index"], marker["revision"])


def _url_words(hit: Hit) -> str:
    """Return path and anchor of a hit's source as words; host and file extension say nothing about the chunk."""
    path = unquote(urlsplit(hit.url).path).removesuffix(".html")
    anchor = hit.anchors[-1] if hit.anchors else ""
    return f"{path} {anchor}".replace("-", " ").replace("/", " ")
