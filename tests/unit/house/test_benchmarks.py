"""Benchmarks: tables between markers, and running all benchmarks with a report of each outcome."""

import sys

import pytest

from benchmarks import __main__ as runner
from benchmarks.common import interleave, ratio
from benchmarks.tables import as_table, check_place, write_table
from pipelines.text.tables import NoPlace

PAGE = "# Page\n\n<!-- bench: one -->\nold\n<!-- /bench: one -->\n\n<!-- bench: two -->\n<!-- /bench: two -->\n\nEnd.\n"


def test_table_replaces_only_the_one_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_table(page, "one", as_table(["a", "b"], [[1, "x \\1"]]))
    assert page.read_text() == PAGE.replace("old", "| a | b |\n|---|---|\n| 1 | x \\1 |")


@pytest.mark.parametrize("text", ["", "# Page\n", "<!-- /bench: one -->\n<!-- bench: one -->\n", PAGE + PAGE])
def test_page_without_markers_is_refused_and_unchanged(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(NoPlace, match="<!-- bench: one -->"):
        check_place(page, "one")
    with pytest.raises(NoPlace, match="<!-- bench: one -->"):
        write_table(page, "one", "new")
    assert page.read_text() == text


@pytest.mark.parametrize("benchmark", runner.BENCHMARKS, ids=lambda benchmark: benchmark.table)
def test_every_table_has_its_place(benchmark):
    check_place(runner.ROOT / benchmark.page, benchmark.table)


def test_compared_functions_alternate_and_swap_order():
    order = []
    found = interleave({name: lambda name=name: order.append(name) or len(order) for name in "ab"}, 2)
    assert (order, found) == (["a", "b", "b", "a"], {"a": [1, 4], "b": [2, 3]})
    assert ratio([1, 4, 9], [1, 2, 3]) == 2


ABSENT = "from benchmarks.common import data; data('no such file')"
SCRIPTS = {"good": "print('table')", "bare": ABSENT, "bad": "raise ValueError"}


@pytest.mark.parametrize(("names", "code"), [("good bare", 0), ("bad good", 1)])
def test_running_all_continues_after_a_failure_and_explains_skips(names, code, monkeypatch, capfd):
    """The scripts are real processes; only the command that starts them is shortened."""
    start = runner.subprocess.Popen
    named = {f"benchmarks.{name}": [sys.executable, "-c", text] for name, text in SCRIPTS.items()}
    monkeypatch.setattr(runner.subprocess, "Popen", lambda command, **more: start(named[command[2]], **more))
    assert runner.run_all([runner.Benchmark(name, name) for name in names.split()], []) == code
    summary = capfd.readouterr().out.split("== summary\n")[1]
    lines = [line.split() for line in summary.splitlines()]
    became = {"good": "done", "bare": "skipped", "bad": "FAILED"}
    assert [line[:2] for line in lines[:-1]] == [[name, became[name]] for name in names.split()]
    assert ("no such file is absent: set RAYDEX_DATA" in summary) is ("bare" in names)
    assert ("exit code 1" in summary) is bool(code)
