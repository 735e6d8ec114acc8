"""A question in another language is told that the model reads English, and an English question never is."""

from dataclasses import replace

import pytest
from kit.answering import MemoryStore, make_hit

from pipelines.answering.engine import QueryEngine
from pipelines.text.detection import find_language, is_foreign, reads_only_english, same_language

CSV = make_hit("https://d.test/data#csv", "Call read_csv to read a CSV file.")
GERMAN = "Wie lese ich eine CSV-Datei?"


@pytest.mark.parametrize(("question", "language"), [
    ("Wie erstelle ich einen Index?", "de"), ("Comment lire un fichier CSV ?", "fr"), ("Hoe maak ik een index?", "nl"),
    ("¿Cómo leo un archivo CSV?", "es"), ("Como posso ler um arquivo?", "pt"), ("Hur skapar jag ett index?", "sv"),
    ("Come faccio a creare un indice?", "it"), ("Jak utworzyć indeks w tabeli?", "pl"),
    ("Hvordan kan jeg lage en indeks?", "und"), ("Hva er det for noe?", "no"), ("Как создать индекс?", "ru"),
    ("如何创建索引", "zh"), ("怎么用 ray.data.read_csv 读取文件", "zh"), ("インデックスを作成するには", "ja"),
    ("인덱스를 어떻게 만드나요", "ko"), ("كيف أنشئ فهرسا", "ar"),
    # Letters that only one language of a script uses. A foreign word with one does not determine the language.
    ("Як створити індекс?", "uk"), ("Як стварыць новы слоўнік?", "be"), ("Како да направим њихов ђонов попис?", "sr"),
    ("Индексті қалай құруға болады?", "kk"), ("چگونه یک فهرست بسازم", "fa"),
    ("Что значит слово «їжак» в примере, и почему оно стоит в самом начале этой довольно длинной строки?", "ru"),
    ("ინდექსის შექმნა", "und"),
    # A quoted English error message and names of products don't make a question English.
    ('helm upgrade bricht ab mit "another operation is in progress"', "de"), ("Dump wiederherstellen", "de"),
    ('helm upgrade échoue avec "another operation is in progress"', "fr"),
    ("não consigo liberar o lock do Terraform", "pt"), ("react 怎么重置 state", "zh"),
    ("nginx zaman aşımını artırma", "tr"), ("helm upgrade падает с `another operation is in progress`", "ru"),
    # English text contains code and names of any language. A few words are not certain.
    ("How do I create an index?", "en"), ("der parser is slow", ""), ("what is la la land", ""),
    ("what does 你好 mean in the example", "en"), ("COMMENT ON TABLE", ""), ("SELECT la FROM t WHERE un = 1", ""),
    ("what does Schadenfreude mean", "en"), ("the die method of the class is called twice", "en"),
    ("how do I decode 'für' in latin-1", "en"), ("what is Σ notation", "en"), ("csv", ""), ("VACUUM FULL", ""),
    ("MIT license", ""), ("São Paulo time zone", ""), ("naïve bayes", ""), ("le vs lt operators", ""), ("", ""),
    ("?", ""),
])  # fmt: skip
def test_language_of_a_question_is_named_if_certain(question: str, language: str) -> None:
    assert find_language(question) == language and is_foreign(question) == (language not in ("en", ""))


@pytest.mark.parametrize(("one", "other", "same"), [
    ("en", "en-GB", True), ("pt_BR", "pt_BR", True), ("PT_br", "pt-PT", True), ("pt_BR", "en_US", False),
])  # fmt: skip
def test_language_is_the_same_in_any_region_and_spelling(one: str, other: str, same: bool) -> None:
    assert same_language(one, other) is same_language(other, one) is same


def test_only_known_english_only_models_are_reported_as_such() -> None:
    english = (
        "all-MiniLM-L6-v2", "all-MiniLM-L6-docs-v1", "BAAI/bge-small-en-v1.5", "intfloat/e5-base-v2",
        "/m/all-mpnet-base-v2/",
    )  # fmt: skip
    others = ("intfloat/multilingual-e5-small", "BAAI/bge-m3", "openai:text-embedding-3-small", "hash:64", "/m/own")
    assert [model for model in (*english, *others) if reads_only_english(model)] == [*english]


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.publish_index(1, CSV, model="all-MiniLM-L6-v2")
    return made


def test_answer_says_that_the_model_reads_english(engine: QueryEngine) -> None:
    answer = engine.query(GERMAN)
    (note,) = answer.notes
    assert "all-MiniLM-L6-v2" in note and note.endswith("Auf Englisch führt die Frage zu mehr Treffern.")
    assert answer.text.startswith(note)
    assert engine.query("How do I read a CSV file?").notes == ()


def test_english_is_not_advised_if_pages_or_model_use_another_language(engine, store):
    text = "Mit read_csv lesen Sie eine CSV-Datei, wenn sie nicht zu groß ist."
    for changed in (replace(CSV, text=text), replace(CSV, language="de")):
        store.publish(1, changed)
        assert "Auf Englisch" not in engine.query(GERMAN).notes[0]
    store.publish_index(2, CSV, model="multilingual-e5-small")
    assert engine.query(GERMAN).notes == (), "a model of many languages"
