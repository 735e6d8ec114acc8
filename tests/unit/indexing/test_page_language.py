"""A page's language is the declared one, else the one of its URL or its prose."""

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.records import Page

UKRAINIAN = "Спочатку прочитайте цей документ.\n\nПотім створіть новий каталог і скопіюйте туди файли."
RUSSIAN = "Сначала прочитайте этот документ.\n\nПотом создайте новый каталог и скопируйте туда файлы."
BULGARIAN = "Първо прочетете този документ.\n\nПосле създайте нова папка и копирайте файловете там."
CROATIAN = (
    "Prvo pročitajte ovaj dokument, jer se na njemu temelji sve.\n\nZatim napravite novu mapu, što se na kraju sačuva."
)
ENGLISH = "Read this document first.\n\nThen make a new folder and copy the files into it."
GERMAN = (
    "Lesen Sie zuerst die Datei und die Tabelle.\n\nDann erstellen Sie einen Ordner für die Dateien und kopieren sie."
)


def language(url: str, text: str, kind: str = "text/markdown") -> str:
    return read_page(Page(url, text.encode(), kind)).language


@pytest.mark.parametrize(
    ("url", "text", "found"),
    [
        ("https://x.org/a", UKRAINIAN, "uk"),
        ("https://x.org/a", RUSSIAN, "ru"),
        ("https://x.org/a", BULGARIAN, "ru"),
        ("https://x.org/docs/bg/a", BULGARIAN, "bg"),
        ("https://x.org/hr/a/", CROATIAN, "hr"),
        ("https://x.org/docs/a.hr", CROATIAN, "hr"),
        ("https://hr.x.org/docs/a", CROATIAN, "hr"),
        (
            "https://x.org/pt_BR/a",
            "Leia isto para criar um arquivo.\n\nDepois você pode ler os dados em uma tabela.",
            "pt-BR",
        ),
        ("https://x.org/uk/a", ENGLISH, "en"),  # the United Kingdom
        ("https://x.org/ml/a", GERMAN, "de"),  # machine learning
        ("https://x.org/it/a", GERMAN, "de"),
        ("https://x.org/ml/a", RUSSIAN, "ru"),
        ("https://x.org/vi/a", "make", ""),  # the editor
    ],
)
def test_locale_folder_sets_the_language_if_the_prose_agrees(url, text, found):
    assert language(url, text) == found


@pytest.mark.parametrize(
    ("count", "found"),
    [((3, 9), "en"), ((10, 10), "de"), ((11, 9), "de"), ((9, 11), "en"), ((1, 1), ""), ((0, 1), "en"), ((1, 0), "")],
)
def test_most_of_the_first_paragraphs_decide_the_language(count, found):
    german, english = (text.split("\n\n")[1] for text in (GERMAN, ENGLISH))
    text = [german] * count[0] + [english] * count[1]
    assert language("https://x.org/a", "\n\n".join(text)) == found
    assert language("https://x.org/a", "\n\n".join(text[::-1])) == found


BODY = "<body><main><h1>A</h1><p>Read this document first.</p><p>Then make a new folder.</p></main>"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ('<html lang="uk"><meta property="og:locale" content="en_US">', "uk"),
        ('<meta property="og:locale" content="uk_UA">', "uk-UA"),
        ('<meta http-equiv="Content-Language" content="cs">', "cs"),
        (
            '<link rel="alternate" hreflang="x-default" href="/de/a"><link rel="alternate" hreflang="de" href="a/">',
            "de",
        ),
        ('<link rel="alternate" hreflang="fr" href="/fr/a">', "en"),
        ('<link rel="alternate" hreflang="fr" href="http://[">', "en"),
    ],
)
def test_language_declared_in_html_wins_over_the_text(head, found):
    assert language("https://x.org/de/a", head + BODY, "text/html") == found
