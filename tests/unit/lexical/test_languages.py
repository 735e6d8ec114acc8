"""Words are found in other forms in their page's language, and searching English pages is unchanged."""

from pathlib import Path

import pytest
from kit.answering import MemoryStore

from pipelines.lexical import LexicalIndex, terms
from pipelines.lexical.terms import STEMMERS, analyzer, question_terms, with_name_parts
from pipelines.records import Hit, digest

ENGLISH = (
    "How do I scale a ray.data.read_csv pipeline? ActorPoolStrategy sets sizes; C++ workers' naïve retries are "
    "organised, HTTPServerConfig_v2 and 2.6.1 files were being written quickly."
)


def make_index(folder: Path, *pages: tuple[str, str, str]) -> LexicalIndex:
    """Return an index of pages: name, language, text."""
    hits = [Hit(name, "https://d.test/a.html", text=text, language=language) for name, language, text in pages]
    store, index = MemoryStore(*hits), LexicalIndex(folder / "7")
    index.sync(store, store.live_index("docs"))
    return index


def found(index: LexicalIndex, question: str) -> list[str]:
    return [name for name, _ in index.search(question, 9).scores]


def test_english_terms_are_unchanged() -> None:
    """The digest covers the terms from before pages in other languages had their own stems."""
    assert digest(*terms(ENGLISH)) == "c67158df1c3be8295d32bf93d6f076f4"
    for language in ("", "en", "en-GB", "zh", "pl"):
        assert with_name_parts(ENGLISH, language) == with_name_parts(ENGLISH)


def test_scores_of_english_pages_are_unchanged(tmp_path: Path) -> None:
    index = make_index(
        tmp_path,
        ("csv", "en", "Call ray.data.read_csv to read comma separated files."),
        ("pool", "", "ActorPoolStrategy sets how many actors run. Files are not read."),
        ("run", "en-GB", "Workers run until the naïve retries end."),
    )
    assert index.search("how are files read by workers?", 9).scores == (
        ("csv", 1.4646490812301636),
        ("pool", 1.1564968824386597),
        ("run", 1.137495756149292),
    )


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("de", "Die Verbindungen werden geschlossen.", "Verbindung schließen: geschlossene"),
        ("de-AT", "Mehrere Dateien hochladen", "Wie lade ich eine Datei?"),
        ("fr", "Les fichiers téléversés sont enregistrés.", "Où enregistrer un fichier ?"),
        ("es", "Las funciones asíncronas", "¿Qué es una función asíncrona?"),
        ("ru", "Запуск нескольких процессов", "как запустить процесс"),
        ("zh", "接收上传的文件，并保存到磁盘。", "怎样上传文件？"),
        ("ja", "データベースに接続します。", "データベースへの接続方法"),
        ("ko", "데이터베이스에 연결합니다.", "데이터베이스를 연결하는 방법"),
    ],
)
def test_other_forms_of_a_word_are_found(tmp_path: Path, language: str, text: str, question: str) -> None:
    index = make_index(tmp_path, ("it", language, text), ("other", language, "Ray"), ("english", "en", "Ray actors"))
    assert found(index, question) == ["it"]


@pytest.mark.parametrize("language", STEMMERS)
def test_question_has_the_same_terms_as_a_page(language: str) -> None:
    """The English stemmer of a folder's fields changes no stem of another language."""
    words = "Verbindungen running fichiers funciones запуска yüklenen tiedostojen read_csv naïve"
    assert set(question_terms(words, language)) <= set(analyzer().analyze(with_name_parts(words, language)))


def test_code_names_are_found_in_pages_of_any_language(tmp_path: Path) -> None:
    index = make_index(tmp_path, ("de", "de", "Rufen Sie ray.data.read_csv auf."), ("zh", "zh", "调用read_csv函数"))
    for question in ("read_csv", "csv"):
        assert set(found(index, question)) == {"de", "zh"}


def test_question_words_find_no_page(tmp_path: Path) -> None:
    index = make_index(tmp_path, ("how", "de", "Wie ist das und warum nicht?"), ("it", "de", "Container bauen"))
    assert found(index, "Wie ist ein Container?") == ["it"]


def test_few_pages_in_another_language_do_not_win_by_a_shared_word(tmp_path: Path) -> None:
    english = [(f"en {n}", "en", "A container runs an image." if n < 8 else "Actors have a state.") for n in range(20)]
    index = make_index(tmp_path, *english, ("de", "de", "Ein Container läuft, und alles andere auch."))
    assert found(index, "container image")[0].startswith("en")
    alone = make_index(tmp_path / "alone", *english)
    both, one = (each.search("container image", 1) for each in (index, alone))
    assert both.terms == one.terms == 2 and both.full_score == pytest.approx(one.full_score, rel=0.2)


def test_words_of_a_page_in_another_language_are_not_typos(tmp_path: Path) -> None:
    index = make_index(tmp_path, *((f"{n}", "de", "Die Dateien werden gelesen") for n in range(3)))
    assert index.correct("datei gelesen", lambda word: False) == "datei gelesen"


MARKED = {  # two words that differ only in a vowel sign
    "Hindi": ("दिन", "दान"),
    "Bengali": ("দিন", "দান"),
    "Tamil": ("கால்", "கல்"),
    "Telugu": ("పాట", "పట"),
    "Gujarati": ("દિન", "દાન"),
    "Thai": ("ที่", "ทา"),
    "Khmer": ("កី", "កា"),
    "Burmese": ("ကို", "ကာ"),
}


@pytest.mark.parametrize(("one", "other"), MARKED.values(), ids=MARKED)
def test_vowel_signs_distinguish_words(one: str, other: str) -> None:
    assert terms(one)
    assert not set(terms(one)) & set(terms(other))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("می\u200cخواهید", "میخواهید"),
        ("क्\u200dष", "क्ष"),
        ("كِتَابٌ", "كتاب"),
        ("مـــرحبا", "مرحبا"),
        ("שָׁלוֹם", "שלום"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_joiners_and_points_do_not_distinguish_words(written: str, asked: str) -> None:
    assert terms(written) == terms(asked)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("ติดตั้งโปรแกรมบนเซิร์ฟเวอร์", "ติดตั้งโปรแกรม"),
        ("ຕິດຕັ້ງໂປຣແກຣມ", "ໂປຣແກຣມ"),
        ("ដំឡើងកម្មវិធី", "កម្មវិធី"),
        ("ဆော့ဖ်ဝဲကို တပ်ဆင်ပါ", "တပ်ဆင်"),
    ],
)
def test_words_are_found_in_texts_without_spaces(tmp_path: Path, text: str, question: str) -> None:
    index = make_index(tmp_path, ("it", "", text), ("other", "", "Another text, in English."))
    assert found(index, question) == ["it"]


def test_hindi_word_finds_only_its_own_page(tmp_path: Path) -> None:
    index = make_index(
        tmp_path,
        ("day", "hi", "हर दिन एक प्रति बनती है।"),
        ("gift", "hi", "दान देने के लिए खाते में जाएँ।"),
        ("tune", "hi", "धुन बदलें।"),
    )
    assert found(index, "दिन") == ["day"]
    assert found(index, "दान") == ["gift"]
