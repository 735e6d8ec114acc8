"""A run's summary lists failed pages with reasons, the command for the rest, and unread files."""

from dataclasses import replace
from typing import Any

from pipelines.indexing.summary import ReindexSummary

PAGES = {"seen": 9, "new": 9, "changed": 0, "unchanged": 0, "duplicate": 0, "failed": 0, "deleted": 0, "listings": 0}
CHUNKS = {"total": 9, "embedded": 9, "reused": 0, "written": 9, "deleted": 0}


def summary(failed: int = 0, shown: int = 0, **more: Any) -> ReindexSummary:
    failures: list[dict[str, Any]] = [{"url": f"https://d.test/{n}", "error": f"reason {n}"} for n in range(shown)]
    pages = PAGES | {"failed": failed}
    return ReindexSummary("docs", 1, pages, 9, CHUNKS, {}, 1, 1, True, True, False, failures=failures, **more)


def test_three_failures_are_shown_with_the_command_for_the_rest():
    lines = str(summary(5, 3)).splitlines()[-4:]
    assert lines[0] == "  failed     https://d.test/0: reason 0"
    assert lines[3] == "             and 2 more: `raydex status docs --failed` lists them"
    assert "more" not in str(summary(3, 3)) and "failed  " not in str(summary())


def test_unread_files_are_named():
    assert "files" not in str(summary())
    assert "  index      none" in str(replace(summary(), index=None))
    some = summary(skipped_files={".png": 1800, ".svg": 30}, excluded_files=4)
    assert "skipped 1,830 files: 1,800 .png, 30 .svg; excluded 4" in str(some)
    assert some.as_dict()["skipped_files"] == {".png": 1800, ".svg": 30}


def test_reasons_for_skipped_pages_are_shown():
    copies = {"state": "duplicate", "pages": 1200, "url": "https://d.test/b", "error": "same text as https://d.test/a"}
    moved = {"state": "redirect", "pages": 1, "url": "https://d.test/old", "error": None}
    many = [moved | {"state": "skipped", "error": f"reason {n}"} for n in range(9)]
    lines = str(summary(left_out=[copies, moved, *many])).splitlines()
    assert "1,200 duplicates, such as https://d.test/b (same text as https://d.test/a)" in lines[2]
    assert lines[2].startswith("  left out   ") and lines[3] == "             1 redirect: https://d.test/old"
    assert lines[8] == "             5 more for other reasons" and "left out" not in str(summary())
