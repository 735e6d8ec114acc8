"""Texts for readers are in one file per language, all with the same texts, placeholders and forms."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from pipelines.text import phrases
from pipelines.text.languages import ENGLISH, LANGUAGES, choose_language, plural_form, read_texts, say, say_beside
from pipelines.text.parsing import NotParsed, UniqueKeyLoader, parse_yaml
from pipelines.text.remarks import make_remarks

ROOT = Path(__file__).parents[3]
# Plural forms by Unicode's rules.
FORMS = {
    **dict.fromkeys(("de", "en", "es", "fr", "it", "nl", "pt"), ("one", "other")),
    **dict.fromkeys(("ja", "ko", "zh"), ("other",)),
    **dict.fromkeys(("pl", "ru"), ("one", "few", "many", "other")),
}
PARTS = ("answer", "launcher", "page")


def placeholders(text: str) -> list[str]:
    return sorted(re.findall(r"\{\w+\}|`", text))


def test_plural_forms_of_every_language_are_known() -> None:
    assert sorted(FORMS) == list(LANGUAGES), "FORMS above has the plural forms of each language"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_texts_and_placeholders_of_english(language: str) -> None:
    texts, english = read_texts(language), read_texts(ENGLISH)
    assert tuple(texts) == PARTS
    for part in PARTS:
        assert list(texts[part]) == list(english[part])
        for name, meant in english[part].items():
            numbered, text = isinstance(meant, dict), texts[part][name]
            forms = text if isinstance(text, dict) else {"": text}
            assert tuple(forms) == (FORMS[language] if numbered else ("",)), name
            held = placeholders(meant["other"] if numbered else meant)
            assert all(form.strip() and placeholders(form) == held for form in forms.values()), name


def test_repeated_key_in_a_table_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xx.yaml").write_text("page:\n  stop: Stop\n  sources:\n    one: a\n  stop: Halt\n")
    monkeypatch.setattr(phrases, "files", lambda package: tmp_path)
    with pytest.raises(yaml.YAMLError, match=r"the key stop is repeated(.|\n)*line 5"):
        phrases.read_table("texts.xx")


def test_repeated_key_is_found_at_any_depth_and_aliases_are_allowed() -> None:
    shared = "a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: [{<<: *a}, *a]\n"
    assert parse_yaml(shared, UniqueKeyLoader)["b"] == {"x": 2}
    for text in ("a: 1\na: 2", "- {b: 1, b: 1}", "c: [[{d: 1, 'd': 2}]]"):
        with pytest.raises(NotParsed, match=r"line \d+, column \d+: the key [abd] is repeated"):
            parse_yaml(text, UniqueKeyLoader)


@pytest.mark.parametrize("confidence", ["high", "some", "low"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_answer_of_any_confidence_has_its_remarks(confidence: str, language: str) -> None:
    """There is no label for some confidence."""
    [remark] = make_remarks({"confidence": confidence, "claims": {"supported": 1, "total": 2}}, language)
    backed = say_beside("supported", language, supported=1, n=2)
    assert remark == (backed if confidence == "some" else f"{say_beside(confidence, language)} · {backed}")


@pytest.mark.parametrize(("language", "forms"), FORMS.items())
def test_number_uses_the_plural_form_of_its_language(language: str, forms: tuple[str, ...]) -> None:
    assert {plural_form(language, n) for n in range(130)} == set(forms) - {"other" if "many" in forms else ""}
    russian = {1: "one", 2: "few", 5: "many", 11: "many", 13: "many", 21: "one", 24: "few", 112: "many"}
    assert language != "ru" or {n: plural_form("ru", n) for n in russian} == russian
    assert plural_form("pl", 21) == "many" and plural_form("fr", 0) == "one" and plural_form("de", 0) == "other"


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialog_labels_fit_the_limits_of_slack(language: str) -> None:
    assert all(len(say_beside(name, language)) <= 24 for name in ("bad", "send", "cancel"))


def test_first_available_language_is_chosen() -> None:
    assert choose_language("sv", "de-AT", "fr") == "de"
    assert choose_language("", "und", "zh_Hant") == "zh"
    assert choose_language() == choose_language("tlh") == ENGLISH
    assert say("searched", "fr", question="{x}") == "Recherche effectuée\u00a0: {x}"


SENTENCE = re.compile(r"[A-Z]\w*(?: \S+){2,}[.:?!…]\W*$", re.DOTALL)
# Prompts are for models and always in English; plans and reasons are for operators.
# The evidence of retrieval is tested with its own sentences.
FOR_MODELS = {"rewriting.py", "styles.py", "prompts.py", "llm.py", "evidence.py", "gathered.py", "researcher.py"}


def sentences_in(path: Path) -> Iterator[str]:
    """Yield the strings in code that read like a sentence, except docstrings and raised or logged ones."""
    stack: list[ast.AST] = [ast.parse(path.read_text())]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Raise, ast.Expr)) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)
        ):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SENTENCE.search(node.value):
            yield f"{path.name}: {node.value}"
        stack += ast.iter_child_nodes(node)


def test_code_contains_no_sentences_for_readers() -> None:
    files = [path for path in (ROOT / "pipelines/answering").rglob("*.py") if path.name not in FOR_MODELS]
    assert [text for path in files for text in sentences_in(path)] == []
