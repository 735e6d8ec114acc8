"""The summary of a run names pages that failed, with their reasons, and how to see the rest."""

from typing import Any

from pipelines.indexing.summary import ReindexSummary

PAGES = {"seen": 9, "new": 9, "changed": 0, "unchanged": 0, "failed": 0, "deleted": 0, "listings": 0}
CHUNKS = {"total": 9, "embedded": 9, "reused": 0, "written": 9, "deleted": 0}


def summary(failed: int, shown: int) -> str:
    failures: list[dict[str, Any]] = [{"url": f"https://d.test/{n}", "error": f"reason {n}"} for n in range(shown)]
    return str(ReindexSummary("docs", 1, PAGES | {"failed": failed}, 9, CHUNKS, {}, 1, 1, True, True, False,
                              failures=failures))  # fmt: skip


def test_without_a_failure_nothing_is_said_of_any():
    assert "failed  " not in summary(0, 0)


def test_three_failures_are_shown_and_the_command_for_the_rest():
    lines = summary(5, 3).splitlines()[-4:]
    assert lines[0] == "  failed    https://d.test/0: reason 0"
    assert lines[3] == "            and 2 more: `raydex status docs --failed` lists them"
    assert "more" not in summary(3, 3)
