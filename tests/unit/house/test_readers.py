"""The benchmark of readers' questions knows a right section by its file and heading, in every style of URLs."""

import pytest

from benchmarks.readers import is_right

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
def test_a_right_section_is_known_by_file_and_heading(url: str, headings: tuple[str, ...], right: bool) -> None:
    assert is_right(RIGHT, url, headings) is right


@pytest.mark.parametrize(("url", "right"), [("https://d.test/guides/", True), ("https://d.test/guides/a", False)])
def test_the_page_of_a_folder_is_right_in_all_its_sections(url: str, right: bool) -> None:
    assert is_right([{"path": "content/guides/_index.md", "heading": ""}], url, ("Guides", "More")) is right


def test_the_front_page_is_that_of_no_other_file() -> None:
    assert is_right([{"path": "docs/README.md", "heading": ""}], "https://d.test/", ("Welcome",))
    assert not is_right([{"path": "docs/install.md", "heading": ""}], "https://d.test/", ("Welcome",))
