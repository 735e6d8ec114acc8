"""The benchmark of readers' questions recognizes a right section by file and heading, in every URL style."""

import pytest
from kit.answering import make_hit

from benchmarks.readers import is_right
from benchmarks.readers_by_hand import held
from benchmarks.readers_sheets import sheet_of
from pipelines.records import Answer

RIGHT = [{"path": "docs/guides/Install.md", "heading": "On `Windows`"}]


@pytest.mark.parametrize(
    ("url", "headings", "right"),
    [
        ("https://d.test/guides/install/", ("Install", "On Windows"), True),
        ("https://d.test/docs/guides/Install.html#on-windows", ("Install", "On Windows", "By hand"), True),
        ("https://d.test/manual/install", ("Install", "On Windows"), True),
        ("https://d.test/guides/install", ("Install", "On macOS"), False),
        ("https://d.test/guides/remove/", ("Remove", "On Windows"), False),
        ("https://d.test/", ("On Windows",), False),
    ],
)
def test_right_section_is_recognized_by_file_and_heading(url: str, headings: tuple[str, ...], right: bool) -> None:
    assert is_right(RIGHT, url, headings) is right


@pytest.mark.parametrize(("url", "right"), [("https://d.test/guides/", True), ("https://d.test/guides/a", False)])
def test_page_of_a_folder_is_right_in_all_its_sections(url: str, right: bool) -> None:
    assert is_right([{"path": "content/guides/_index.md", "heading": ""}], url, ("Guides", "More")) is right


def test_front_page_matches_no_other_file() -> None:
    assert is_right([{"path": "docs/README.md", "heading": ""}], "https://d.test/", ("Welcome",))
    assert not is_right([{"path": "docs/install.md", "heading": ""}], "https://d.test/", ("Welcome",))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("HTTP metrics {#http}", "HTTP metrics"),
        ("Exit code 97 [#5769](https://code.test/pull/5769)", "Exit code 97 #5769"),
        ("Rotate a key {: .new }", "Rotate a key"),
        ("Set `maxVUs`", "Set maxVUs"),
    ],
)
def test_a_heading_is_compared_as_readers_see_it(written: str, shown: str) -> None:
    answers = [{"path": "docs/metrics.md", "heading": written}]
    assert is_right(answers, "https://d.test/metrics/", ("Metrics", shown))
    assert not is_right(answers, "https://d.test/metrics/", ("Metrics", f"{shown} 2"))


ASKED = {"answers": RIGHT}
CHUNKS = [
    make_hit(f"https://d.test/docs/guides/install/#{n}", f"Step {n} runs `setup {n}`.\n\nIt ends.", headings)
    for n, headings in enumerate([("Install",), ("Install", "On Windows"), ("Install", "On Windows")])
]


@pytest.mark.parametrize(
    ("shown", "kind"),
    [((1, 2), "whole"), ((2,), "part"), ((0,), "page"), ((), "neither")],
    ids=str,
)
def test_sheet_tells_how_much_of_the_right_section_a_prompt_contains(shown: tuple[int, ...], kind: str) -> None:
    prompt = "\n\n".join(f"[{n}] Install\n{CHUNKS[n].text}" for n in shown)
    assert held(ASKED, prompt, CHUNKS) == kind


def test_sheet_shows_the_view_of_a_reader_without_labels() -> None:
    row = {"question": "How do I install it?", "before": "What is it?", **ASKED}
    answer = Answer("How do I install it?", "word " * 700 + "end", known=False)
    sheet = sheet_of("d-1", row, answer)
    assert "Asked before: What is it?" in sheet and "I do not know" in sheet and "Windows" not in sheet
    assert sheet.count("word ") == 600 - 1 and "(cut here)" in sheet and "end" not in sheet
