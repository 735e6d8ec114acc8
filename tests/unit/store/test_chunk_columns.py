"""A chunk's columns are declared once, and the records' fields agree with them."""

from dataclasses import fields

from pipelines.records import Chunk, Hit
from pipelines.store import StagedPage
from pipelines.store.chunks import CHUNK_COLUMNS, Column

# The columns of 0.1.0, in this order.
FIRST = [
    "id", "url", "anchor", "anchors", "title", "headings", "ordinal", "text", "text_hash", "embed_hash", "tokens",
    "tags", "version", "language", "plain",
]  # fmt: skip


def test_columns_of_the_first_release_stay_and_later_ones_have_a_default():
    assert CHUNK_COLUMNS.names[: len(FIRST)] == FIRST
    for name in CHUNK_COLUMNS.names[len(FIRST) :]:
        assert "default" in CHUNK_COLUMNS.definition(name).as_string()


def test_hit_reads_only_its_own_fields_and_those_without_a_default():
    hit = CHUNK_COLUMNS.read_hit(dict.fromkeys(CHUNK_COLUMNS.names, "x"))
    assert (hit.chunk_id, hit.score, hit.score_kind, hit.anchors) == ("x", 0.0, "none", ("x",))


def test_chunk_and_its_page_have_every_column():
    chunk = Chunk("i", "u", ("a", "b\0"), "t\ud800", ("h",), 1, "text", "th", "et", "eh", 3, "plain")
    page = StagedPage("u", "ih", "T", "en", ("tag",), None, 1, [chunk])
    assert CHUNK_COLUMNS.values(page, chunk) == [
        "i", "u", "b", ["a", "b"], "t", ["h"], 1, "text", "th", "eh", 3, ["tag"], None, "en", "plain",
    ]  # fmt: skip
    assert {field.name for field in fields(Hit)} >= {"anchors", "tags", "version", "language", "ordinal"}


def test_additional_column_is_in_every_list():
    wider = CHUNK_COLUMNS.extended(Column("kind", "text", hit="context", default="'prose'"))
    assert wider.names == [*CHUNK_COLUMNS.names, "kind"] and wider.types[-1] == "text"
    parts = {name: part.as_string() for name, part in wider.parts.items()}
    assert parts["columns"].endswith('"kind"') and parts["hit"].endswith('"c"."kind"')
    assert parts["definitions"].endswith("\"kind\" text not null default 'prose'")
    assert (parts["current"][-10:], parts["staged"][-10:]) == ('"c"."kind"', '"s"."kind"')
    assert parts["variable"].endswith('"kind"') and '"id"' not in parts["variable"]
