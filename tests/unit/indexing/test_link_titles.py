"""A link without words shows the title of its target: a file, or a labelled section."""

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
    "docs/parts.rst": (
        ".. _Process States:\n.. _`second name`:\n\nStates of a ``process``\n-----------------------\n\n"
        ".. _over:\n\n====\nOver\n====\n\n.. _no title:\n\nText alone.\n\n.. _site: https://a.test/\n\n"
        ".. _std:group:\n\nGroup\n^^^^^\n"
    ),
    "docs/parts.md": "(install-it)=\n\n## Install `it`\n\n(no-title)=\nText.\n\n# Late\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def filled(root: Path, name: str, text: str) -> str:
    def sources() -> list[str]:
        return [str(path) for path in root.rglob("*.*")]

    return Includes(LocalFileSystem(), f"{root}/", sources)(str(root / name), text.encode()).decode()


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
        ("docs/more/a.rst", "See :ref:`process states` and :ref:`second\nname`.",
         "See :ref:`States of a process <process states>` and :ref:`States of a process <second\nname>`."),
        ("docs/more/a.rst", "See :std:ref:`over` and :ref:`std:group`.",
         "See :std:ref:`Over <over>` and :ref:`Group <std:group>`."),
        ("docs/more/a.rst", "See :ref:`install-it`.", "See :ref:`Install it <install-it>`."),
        ("docs/a.md", "See {ref}`over` and [](#install-it).", "See {ref}`Over <over>` and [Install it](#install-it)."),
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
        ("docs/a.rst", "See ``:ref:`over``` and :ref:`words <over>`, :ref:`no title`, :ref:`!over` and :ref:`site`."),
        ("docs/a.md", "See {ref}`no-title`, [](#gone) and [words](#install-it).\n\n```\n{ref}`over`\n```\n"),
        ("docs/parts.rst", ".. _over:\n\nOver\n====\n\n:ref:`over`"),  # its own: the reader of the page knows it
        ("modules/ROOT/pages/a.adoc", "----\nxref:custom.adoc[]\n----\n\nxref:custom.adoc[words] xref:gone.adoc[]"),
    ],
)
def test_other_text_code_and_links_to_no_file_stay(root, name, text):
    assert filled(root, name, text) == text


def test_no_title_comes_from_outside_the_folder(root):
    (root.parent / "secret.md").write_text("# Secret\n")
    assert filled(root, "docs/a.md", "[](../../secret.md)") == "[](../../secret.md)"
