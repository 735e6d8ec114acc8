"""Chunks that were read are remembered: by revision, and only so many bytes of them."""

from dataclasses import replace

from kit.answering import make_hit

from pipelines.store.known_chunks import KnownChunks

FIRST, SECOND, THIRD = (make_hit(f"https://d.test/{n}", "x" * 4_000) for n in range(3))


def test_chunks_are_known_at_their_revision_only() -> None:
    known, renamed = KnownChunks(), replace(FIRST, title="Another title")
    known.add(1, 1, [FIRST])
    known.add(1, 2, [renamed])
    assert known.get(1, 1, [FIRST.chunk_id, "other"]) == {FIRST.chunk_id: FIRST}
    assert known.get(1, 2, [FIRST.chunk_id]) == {FIRST.chunk_id: renamed}
    assert known.get(2, 1, [FIRST.chunk_id]) == known.get(1, 3, [FIRST.chunk_id]) == {}


def test_first_ones_are_forgotten_beyond_the_most_bytes() -> None:
    known, ids = KnownChunks(most=12_000), [FIRST.chunk_id, SECOND.chunk_id, THIRD.chunk_id]
    known.add(1, 1, [FIRST])
    known.add(1, 1, [FIRST, SECOND])
    assert list(known.get(1, 1, ids)) == ids[:2]
    known.add(1, 1, [THIRD])
    assert list(known.get(1, 1, ids)) == ids[1:]
    known.add(1, 1, [replace(FIRST, text="x" * 20_000)])
    assert known.get(1, 1, ids) == {}
