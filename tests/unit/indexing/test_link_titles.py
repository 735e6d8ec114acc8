"""A link without words shows the title of its target file."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from pipelines.indexing.folders.includes import Includes

FILES = {
    "docs/guide.md": "---\ntitle: x\n---\n# The `black` guide {#own}\n\nText.\n",
    "docs/more/api.rst": ".. _api:\n\n=========\nAn ``API``\n==========\n\nText.\n",
    "docs/more/plain.rst": "Plain *title*\n=============\n\nText.\n",
    "modules/ROOT/pages/custom.adoc": "= Apply a Custom `Stylesheet`\n:nav: x\n\nText.\n",
    "modules/cli/pages/run.adoc": "= Run It\n\nText.\n",
    "docs/untitled.md": "Text alone.\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def filled(root: Path, name: str, text: str) -> str:
    return Includes(LocalFileSystem(), f"{root}/")(str(root / name), text.encode()).decode()


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("docs/a.md", "See [](guide.md).", "See [The black guide](guide.md)."),
        ("docs/more/a.md", "See [](../guide.md).", "See [The black guide](../guide.md)."),
        ("docs/a.md", "See {doc}`guide` and {doc}`/more/api`.",
         "See {doc}`The black guide <guide>` and {doc}`An API </more/api>`."),
        ("docs/more/a.rst", "See :doc:`plain` and :doc:`../guide`.",
         "See :doc:`Plain title <plain>` and :doc:`The black guide <../guide>`."),
        ("docs/more/a.rst", "One\n-----\n\n:doc:`plain`\n\nTwo\n-----\n\n:doc:`plain`.",
         "One\n-----\n\n:doc:`Plain title <plain>`\n\nTwo\n-----\n\n:doc:`Plain title <plain>`."),
        ("docs/a.md", "```{note}\nSee {doc}`guide`.\n```\n\nTitle\n-----\n\n[](guide.md)",
         "```{note}\nSee {doc}`The black guide <guide>`.\n```\n\nTitle\n-----\n\n[The black guide](guide.md)"),
        ("modules/ROOT/pages/a.adoc", "See xref:custom.adoc[] and xref:cli:run.adoc[].",
         "See xref:custom.adoc[Apply a Custom Stylesheet] and xref:cli:run.adoc[Run It]."),
    ],
)  # fmt: skip
def test_link_without_words_gets_the_title_of_its_file(root, name, text, shown):
    assert filled(root, name, text) == shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", "See [words](guide.md), [](untitled.md), [](gone.md), ![](guide.md) and {doc}`W <guide>`."),
        ("docs/a.md", "```\n[](guide.md)\n```\n\n``{doc}`guide` ``\n"),
        ("docs/a.rst", "See ``:doc:`guide``` and :doc:`words <guide>` and :doc:`gone`."),
        ("modules/ROOT/pages/a.adoc", "----\nxref:custom.adoc[]\n----\n\nxref:custom.adoc[words] xref:gone.adoc[]"),
    ],
)
def test_other_text_code_and_links_to_no_file_stay(root, name, text):
    assert filled(root, name, text) == text


def test_no_title_comes_from_outside_the_folder(root):
    (root.parent / "secret.md").write_text("# Secret\n")
    assert filled(root, "docs/a.md", "[](../../secret.md)") == "[](../../secret.md)"
