"""Bad JSON, YAML and TOML raise one error, however they are bad."""

import re
from pathlib import Path

import pytest

from pipelines.text.parsing import NotParsed, parse_json, parse_toml, parse_yaml

ROOT = Path(__file__).parents[3]
DEEP = 20_000
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10))


@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP, "{", "", "9" * 5_000, b'"\xff"', "[1,]"])
def test_bad_json_is_one_error(text):
    with pytest.raises(NotParsed):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * DEEP, "a = " + "{b = " * 5_000, "a", "a = 1\na = 2", f"a = {'9' * 5_000}"]
)
def test_bad_toml_is_one_error(text):
    with pytest.raises(NotParsed):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    ["[" * 5_000, "- " * 5_000 + "a", "{", "a: b: c", "a: !!bool x", "a: !!int ''", "a: !!timestamp x", "a: 2024-99-99",
     "a: !!python/name:os.system", "? [a]\n: b", "a: \x00", "a: *b", "--- a\n--- b", b"\xff\xfe\xff", BOMB, MERGES,
     "&a [*a]", "&a {b: *a}"],
)  # fmt: skip
def test_bad_yaml_is_one_error(text):
    with pytest.raises(NotParsed) as error:
        parse_yaml(text)
    assert "\n" not in str(error.value)


def test_good_texts_are_parsed():
    assert parse_json(b'{"a": [1]}') == parse_toml("a = [1]") == parse_yaml("a: [1]") == {"a": [1]}
    assert parse_yaml("a: &a {b: 1}\nc: {<<: *a, d: 2}") == {"a": {"b": 1}, "c": {"b": 1, "d": 2}}
    assert parse_yaml("") is None


# These read only text that this project wrote: its own files, replies of its own processes, signed values.
OWN = {
    "pipelines/diagnosis/cluster.py",
    "pipelines/evaluation/fingerprint.py",
    "pipelines/embedding/onnx/export.py",
    "pipelines/indexing/crawling/spider.py",
    "pipelines/keeper.py",
    "pipelines/lexical/documents.py",
    "pipelines/text/phrases.py",
    "pipelines/training/ranking.py",
    "serve/api/clicks.py",
    "serve/api/requests.py",
    "pipelines/store/transfer.py",
    "serve/slack/rating.py",
    # It reports the line and column of a mistake, and handles both errors itself.
    "pipelines/evaluation/dataset.py",
}
PARSER = re.compile(r"\b(?:json\.loads?|yaml\.(?:safe_|full_)?load|tomllib\.loads?)\(")


def test_only_one_module_parses_what_others_wrote():
    parsing = {
        str(path.relative_to(ROOT))
        for folder in ("pipelines", "serve", "jobs")
        for path in (ROOT / folder).rglob("*.py")
        if PARSER.search(path.read_text("utf-8"))
    }
    assert parsing - {"pipelines/text/parsing.py"} == OWN
