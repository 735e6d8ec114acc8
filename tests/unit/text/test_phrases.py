"""Tables of phrases: the matches of their rows, and that every phrase is used."""

from pathlib import Path

import pytest
import yaml

from pipelines.text.phrases import compile_phrases, read_phrases, read_table

ROOT = Path(__file__).parents[3]
TABLES = [
    path.relative_to(ROOT).with_suffix("")
    for path in sorted((ROOT / "pipelines").rglob("*.yaml"))
    if path.with_suffix(".py").exists() and path.stem != "prices"
]


def test_row_is_a_case_insensitive_alternative():
    thanks = compile_phrases({"patterns": {"thanks": ["thanks?", "ty$"]}})["thanks"]
    assert [bool(thanks.match(text)) for text in ("Thank you", "TY", "tyre")] == [True, True, False]


def test_phrase_starts_and_ends_with_a_whole_word():
    this = compile_phrases({"phrases": {"this": ["this page", "here"]}})["this"]
    assert [bool(this.search(text)) for text in ("on this page?", "there", "hereby", "not here")] == [1, 0, 0, 1]


def test_part_matches_any_of_its_rows():
    table = {
        "parts": {"page": ["page", "{guide}s?"], "guide": ["guide", "tutorial"]},
        "patterns": {"this": ["this {page}$", r"\d{2}"]},
    }
    this = compile_phrases(table)["this"]
    assert [bool(this.search(text)) for text in ("this page", "this tutorials", "this pages", "12")] == [1, 1, 0, 1]


def test_missing_part_is_an_error():
    with pytest.raises(KeyError, match="page"):
        compile_phrases({"patterns": {"this": ["this {page}"]}})


def test_yaml_words_are_not_read_as_booleans():
    assert "no" in read_table("pipelines.text.detection")["taken_for"]


@pytest.mark.parametrize("path", TABLES, ids=str)
def test_table_reads_the_same_without_the_c_library(path):
    text = (ROOT / path).with_suffix(".yaml").read_text()
    assert yaml.load(text, yaml.BaseLoader) == read_table(".".join(path.parts))


# The families of embedding models are tried in order, not by name.
@pytest.mark.parametrize("path", [path for path in TABLES if path.stem != "families"], ids=str)
def test_every_phrase_table_is_used(path):
    files = (ROOT / path).parents[1].rglob("*.py")
    code = "\n".join(file.read_text() for file in files)
    names = read_phrases(".".join(path.parts))
    assert [name for name in names if f'"{name}"]' not in code] == []
