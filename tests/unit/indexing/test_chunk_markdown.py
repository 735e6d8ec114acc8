"""The Markdown of a chunk is complete after any cut, and affects neither ids nor vectors."""

from itertools import count
from pathlib import Path

import pytest

from pipelines.answering.retrieval.neighbours import join_chunks
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.page.stored import plain_text
from pipelines.records import IndexSettings, Page, digest

URL = "https://docs.example/guide/page.html"
PAGES = Path(__file__).parents[2] / "data" / "pages"
# Digests of the ids and embed_hashes of each page's chunks.
RECORDED = {
    "asciidoctor": "a55e8995ad38",
    "docusaurus": "95aefd225e3f",
    "doxygen": "6f66de6e10d8",
    "gitbook": "eefd8c36b541",
    "honkit": "fc2ff08cfb23",
    "javadoc-8": "2427aa3188cd",
    "javadoc": "97d43e8e22be",
    "mdbook": "7bd543dc0810",
    "mkdocs-material": "821b6e3cfdaf",
    "pdoc": "6ad71c4f3266",
    "rustdoc": "0fce0339fa21",
    "sphinx-pydata": "390ba61d4713",
    "starlight": "1071757bc367",
    "typedoc": "924df1f365c6",
    "vitepress": "753e8eb12f2b",
    "yard": "493d71ea5c03",
}


def texts(html: str, size: int = 0) -> list[str]:
    cut = PageCutter(IndexSettings(model="hash:16", dimension=16, chunk_size=size))
    return [chunk.text for chunk in cut(Page(URL, f"<main><h1 id='t'>T</h1>{html}</main>".encode())).chunks]


@pytest.mark.parametrize("name", RECORDED)
def test_ids_and_vectors_equal_those_of_the_plain_text(name: str) -> None:
    page = Page(f"https://docs.example/{name}.html", (PAGES / f"{name}.html").read_bytes())
    chunks = PageCutter(IndexSettings(model="hash:16", dimension=16))(page).chunks
    assert digest(*(chunk.id for chunk in chunks), *(chunk.embed_hash for chunk in chunks))[:12] == RECORDED[name]


def test_words_repeated_from_two_paragraphs_stay_two_paragraphs() -> None:
    words = " ".join(f"word{n}" for n in range(60))
    html = f"<main><h1>T</h1><p>{words} last</p><p>A short one follows here. {words}</p></main>"
    cut = PageCutter(IndexSettings(model="hash:16", dimension=16, chunk_size=90, chunk_overlap=12))
    chunks = cut(Page(URL, html.encode())).chunks
    assert any("last\n\nA short" in chunk.text for chunk in chunks[1:])
    assert all(chunk.embed_text.endswith(plain_text(chunk.text)) for chunk in chunks)


def test_cut_listing_is_closed_and_reopened_with_its_language() -> None:
    code = "\n".join(f"    call_{n}(a, b, c)" for n in range(60))
    found = texts(f"<p>Run this:</p><pre class='language-python'>def run():\n{code}</pre>", 64)
    assert len(found) > 2
    assert all(text.count("```python\n") == text.count("\n```") - text.count("\n```python") == 1 for text in found)
    assert all(text.startswith("Run this:\n\n```python\ndef run():\n…\n    call_") for text in found[1:])


def test_cut_table_repeats_its_header() -> None:
    rows = "".join(f"<tr><td><code>option-{n}</code></td><td>a | b is number {n}</td></tr>" for n in range(60))
    found = texts(f"<table><tr><th>Name</th><th>Meaning</th></tr>{rows}</table>", 64)
    assert len(found) > 2
    assert all(text.startswith("| Name | Meaning |\n| --- | --- |\n| `option-") for text in found)
    assert sum(text.count(r"a \| b is number") for text in found) == 60


def test_list_keeps_its_markers_and_item_contents() -> None:
    items = "".join(f"<li>Step {n} is this<ul><li>with a part of it</li></ul></li>" for n in range(40))
    found = texts(f"<p>Do it:</p><ol>{items}</ol>", 64)
    assert len(found) > 2
    numbers, lines = count(1), [line for text in found for line in text.split("\n")]
    assert [line for line in lines if "Step" in line] == [f"{next(numbers)}. Step {n} is this" for n in range(40)]
    assert {line for line in lines if "part" in line} <= {"    - with a part of it", "-   - with a part of it"}


def test_code_stays_in_its_item_and_a_note_is_quoted() -> None:
    html = (
        "<ul><li><p>Install <a href='../raydex.html#x'><code>raydex</code></a>:</p>"
        "<div class='highlight-bash'><div class='highlight'><pre>pip install raydex</pre></div></div></li></ul>"
        "<div class='admonition note'><p>Note</p><p>It is <a href='shot.png'>small</a>.</p></div>"
        "<dl><dt>term</dt><dd><p>First.</p><p>Second.</p></dd></dl>"
    )
    [text] = texts(html)
    assert text == (
        "- Install [`raydex`](https://docs.example/raydex.html#x):\n\n    ```bash\n    pip install raydex\n    ```\n\n"
        "> Note\n>\n> It is small.\n\nterm:\\\nFirst.\n\n\nSecond."
    )


def test_separate_listing_is_not_joined_to_the_one_before() -> None:
    lines = {name: "\n".join(f"{name} = {n}" for n in range(20)) for name in "ab"}
    listings = "".join(f"<pre>{text}</pre>" for text in lines.values())
    one, two = texts(f"<p>Write one of these:</p>{listings}", 110)
    assert two.startswith("Write one of these:\n\n…\n") and "b = 0" in two
    assert join_chunks(one, two, 0).count("```") == 4
