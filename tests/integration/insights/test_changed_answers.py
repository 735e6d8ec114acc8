"""Recorded answers that cited a section's old text are found, and others are not."""

from dataclasses import replace
from pathlib import Path

import pytest
from kit.recorded import recorded
from kit.reindexing import Jobs, site_sections, write_site
from kit.workshop import BASE

from pipelines.store import RecordedQuestion, Store

pytestmark = pytest.mark.slow
PAGES = site_sections(12)
FLAGS = ("--no-ray", "--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")


def asked(store: Store, id: str, question: str, source: str) -> RecordedQuestion:
    """Record a question whose answer cites the section at `source` as it is in the live index."""
    index = store.live_index("docs")
    hit = next(hit for hit in store.chunks_of_pages(index.id, {source.partition("#")[0]}) if hit.source == source)
    found = [replace(hit, sources=(source,))]
    return recorded(id, question, "docs", text="So [1].", cited=[source], found=found, index=index.id)


def test_answers_with_a_changed_or_missing_section_are_found(jobs: Jobs, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_site(folder, PAGES)
    jobs.run("reindex", "--collection", "docs", "--path", folder, "--base-url", BASE, *FLAGS)
    changed, gone, kept = (f"{BASE}{name}.html#usage" for name in ("p03", "p04", "p05"))
    store.record_questions([
        asked(store, "a", "How do I use it? I am jane@example.com", changed),
        asked(store, "b", "How is it used?", changed),
        asked(store, "c", "Where is it?", gone),
        asked(store, "d", "What is it?", kept),
    ])  # fmt: skip
    assert jobs.run("insights", "--changed-answers").summary == {"changed": [], "review": 0}
    write_site(folder, {name: PAGES[name] | {"limits": "Other limits."} for name in ("p03", "p05")})
    write_site(folder, {"p03": PAGES["p03"] | {"usage": "Use it in another way."}})
    jobs.run("reindex", "docs", "--changed", f"{BASE}p03.html", f"{BASE}p05.html", "--deleted", f"{BASE}p04.html")
    found = jobs.run("insights", "--changed-answers", "--collection", "docs").summary["changed"]
    assert [(one["source"], one["gone"], one["answers"]) for one in found] == [(changed, False, 2), (gone, True, 1)]
    assert sorted(found[0]["questions"]) == ["How do I use it? I am [e-mail]", "How is it used?"]
