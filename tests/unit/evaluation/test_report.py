"""The report of an experiment is one file that loads nothing and escapes all text of pages."""

import json
import re

import pytest
from kit.browser import needs_browser
from kit.xss import PAYLOADS
from test_experiment import EXAMPLES, SWEEP, compared, failed_record, record, routed_record

from pipelines.evaluation.experiments.comparison import check_names
from pipelines.evaluation.experiments.report import MOST_QUESTIONS, as_html, write_report
from pipelines.evaluation.experiments.sweep import Cell
from pipelines.evaluation.experiments.table import as_markdown, as_sheet, write_into_page
from pipelines.evaluation.metrics import METRICS, Metric
from pipelines.text.tables import NoPlace

EVIL = "</script><script>document.title='x'</script><img src=x onerror=\"document.title='x'\"> & <b>bold</b> \u2028"


def results(name: str = "one", title: str = "Title", *more: dict) -> dict:
    """Return results of three runs, one of them failed, and `more`. `title` is every text from a document or person."""
    broken = failed_record(Cell("broken", {}), {}, RuntimeError(title))
    found = compared(record(name, [1] * 6 + [None] * 2), record("two", [1] * 8), broken, *more)
    for question in found["questions"]:
        question["question"] = title
    found["places"] = [[source, title] for source, _ in found["places"]]
    return found


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_report_is_one_file_that_loads_nothing():
    page = as_html(results())
    policy = re.search('Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy and "'unsafe-inline'" not in policy.partition("style-src")[0]
    assert not re.search(r"""(src|href)=["']""", page)
    assert "@import" not in page and "url(" not in page
    code = page.replace(json.dumps("http://www.w3.org/2000/svg"), "").split('id="data">')[0]
    assert not re.search(r"https?://", code)


def test_report_includes_every_run_and_question():
    data = data_of(as_html(results(), ["passed: all"]))
    assert [run["name"] for run in data["runs"]] == ["one", "two", "broken"]
    assert data["runs"][1]["against"]["retrieval_score@3"][0] == pytest.approx(0.25)
    assert len(data["questions"]) == len(EXAMPLES)
    assert data["gate"] == ["passed: all"]


def test_text_of_pages_and_questions_is_escaped():
    page = as_html(results(name=EVIL, title=EVIL))
    assert page.count("<script") == as_html(results()).count("<script")
    assert "<img" not in page and "<b>bold" not in page and "\u2028" not in page
    assert data_of(page)["questions"][0]["question"] == EVIL
    named = {**results(), "name": EVIL}
    assert "<title>&lt;/script&gt;" in as_html(named)


def test_template_markers_in_a_question_have_no_effect():
    marks = "@@DATA@@ @@TITLE@@ \\1"
    assert data_of(as_html(results(title=marks)))["questions"][0]["question"] == marks


def test_large_report_shows_only_the_hits_in_which_runs_differ():
    found = results()
    many = MOST_QUESTIONS + 5
    found["questions"] = [{"question": str(n), "id": str(n)} for n in range(many)]
    for place, run in enumerate(found["runs"][:2]):
        run["values"]["retrieval_score@3"] = [0.0] * (many - 2) + [float(place)] * 2
        run["found"] = [{"hits": []}] * many
    shown = data_of(as_html(found))["runs"][0]["found"]
    assert len(shown) == many
    assert sum(row is not None for row in shown) == MOST_QUESTIONS
    assert shown[-1] is not None and shown[-2] is not None


@pytest.mark.slow
@needs_browser
def test_browser_draws_the_report_and_runs_nothing_from_a_page(browser, tmp_path):
    easy, hard = ["easy"] * 4, ["hard"] * 4
    answered = [routed_record("cheap", easy * 2), routed_record("dear", hard * 2)]
    answered.append(routed_record("routed", easy + hard, **{"router.kind": "rules"}))
    (tmp_path / "report.html").write_text(as_html(results(EVIL, EVIL, *answered)))
    browser.open(f"file://{tmp_path}/report.html")
    whole = browser.evaluate("document.documentElement.outerHTML")
    drawn = whole.partition("</script>")[0] + whole.rpartition("</script>")[2]
    assert "<circle" in drawn
    assert "<title>s: experiment</title>" in drawn
    assert "&lt;b&gt;bold" in drawn and "<b>bold" not in drawn
    assert "easy 50%, hard 50%" in drawn  # shares of the agents


@pytest.mark.slow
@needs_browser
def test_no_payload_runs_in_the_report(browser, tmp_path):
    for start in range(0, len(PAYLOADS), len(EXAMPLES)):
        payloads = [payload for _, payload in PAYLOADS[start:][: len(EXAMPLES)]]
        found = results(name=payloads[0], title=payloads[0])
        for question, payload in zip(found["questions"], payloads, strict=False):
            question["question"] = payload
        (tmp_path / "report.html").write_text(as_html(found, [f"failed: {payload}" for payload in payloads]))
        browser.open(f"file://{tmp_path}/report.html")
        browser.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        assert browser.evaluate("document.querySelectorAll('circle').length > 0")
        assert not browser.evaluate("'pwned' in window")
        assert browser.evaluate("document.querySelectorAll('main script, iframe, img, object, embed').length") == 0
    assert browser.named("Page.javascriptDialogOpening", "Log.entryAdded") == []
    assert {*browser.requests()} == {f"file://{tmp_path}/report.html"}


def test_declared_metric_appears_in_records_tables_and_the_report(monkeypatch, tmp_path):
    first = Metric("first_page", "first page", of_hits=lambda example, found, k: float(found.pages[0] != "x") / k)
    monkeypatch.setitem(METRICS, first.name, first)
    check_names(SWEEP, "first_page@3")
    found = compared(record("one", [1] * 8), record("two", [2] * 8), metric="first_page@3")
    assert found["runs"][0]["scores"]["first_page@1"][0] == 1
    assert found["runs"][1]["against"]["first_page@3"][0] == 0
    assert "first page at each number of chunks" in as_markdown(found) and "**0.333**" in as_markdown(found)
    assert str(as_sheet(found)).splitlines()[2].split()[:4] == ["one", "*", "1.000", "0.333"]
    write_report(tmp_path, found)
    data = data_of((tmp_path / "report.html").read_text())
    assert data["labels"]["first_page@3"] == "first page @ 3" and "first_page@3" in data["of_hits"]


def test_extra_metric_is_a_column_of_every_table(monkeypatch):
    monkeypatch.setitem(METRICS, "depth", Metric("depth", "depth", of_hits=lambda *_: 0.25, by_k=False, in_tables=True))
    found = results()
    assert "depth" in str(as_sheet(found)).splitlines()[1].split()
    assert "| depth |" in as_markdown(found) and "| 0.250 |" in as_markdown(found)


# ---------------------------------------------------------------------------------------------- Markdown


def test_table_has_a_line_per_run_best_first():
    text = as_markdown(results())
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines] == ["run", "---", "two", "one", "broken"]
    assert "**1.000** [1.000, 1.000]" in text and "+0.250" in text and "failed: RuntimeError" in text
    assert len({line.count("|") for line in lines[:5]}) == 1


def test_answers_have_a_table_with_every_measure_seconds_and_tokens():
    records = [routed_record("cheap", ["easy"] * 8), routed_record("dear", ["hard"] * 8)]
    records.append(failed_record(Cell("broken", {}), {}, RuntimeError("down")))
    for one, share in zip(records, (0.5, 1.0), strict=False):
        one["scores"]["claims_supported"] = [share, share - 0.25, share]
    found = compared(*records)
    both, ranked = as_markdown(found), as_markdown(compared(*records, metric="quality"))
    assert both.count("| run |") == 2 and ranked.count("| run |") == 1
    head, _, first, second, failed = [line.split(" | ") for line in ranked.splitlines() if line.startswith("|")]
    assert head[1:4] == ["claims supported", "quality", "quality to cheap"]
    assert head[4:] == ["seconds", "first word", "tokens read", "written", "$/1000 |"]
    assert first[:4] == ["| dear", "1.00 [0.75, 1.00]", "**5.00** [5.00, 5.00]", "+2.00 [+0.50, +3.50]"]
    assert (second[0], second[3], first[5:]) == ("| cheap", "", ["", "1", "1", "10.00 |"])
    assert len(failed) == len(head) and "failed: RuntimeError: down" in failed[1]
    assert "claims supported" in str(as_sheet(found)).splitlines()[1]
    assert "WARNING" not in both
    found["runs"][0]["stand_ins"] = 3
    for text in (str(as_sheet(found)), as_markdown(found)):
        assert "WARNING: cheap: a model failed for 3 questions, which another agent answered" in text


def test_text_stays_in_its_cell():
    line = next(line for line in as_markdown(results(name="a | b\n<b>c</b>")).splitlines() if "a \\|" in line)
    assert "a \\| b &lt;b&gt;c&lt;/b&gt;" in line


def test_table_is_written_between_its_markers_and_the_rest_stays(tmp_path):
    page = tmp_path / "quality.md"
    write_into_page(page, "one", "first\n")
    assert page.read_text() == "# Quality\n\n<!-- experiment one: begin -->\nfirst\n<!-- experiment one: end -->\n"
    page.write_text(f"Before.\n{page.read_text()}After.\n")
    write_into_page(page, "one", "second \\1\n")
    assert "first" not in page.read_text()
    assert page.read_text().startswith("Before.\n# Quality") and page.read_text().endswith("end -->\nAfter.\n")
    assert "second \\1\n" in page.read_text()
    with pytest.raises(NoPlace, match="put the lines <!-- experiment two: begin -->"):
        write_into_page(page, "two", "x\n")
