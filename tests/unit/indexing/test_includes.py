"""A page contains the files that its source includes, in the syntax of generators, and no secret files."""

import os
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from pipelines.indexing.folders.includes import MOST_BYTES, Includes

CODE = "import app\n\n# --8<-- [start:main]\ndef main():\n    return 1\n# --8<-- [end:main]\n"
MAIN = "def main():\n    return 1"
ALL = f"import app\n\n{MAIN}"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for folder in (".git", "src", "docs/en/guide"):
        (root / folder).mkdir(parents=True)
    (root / "src" / "a.py").write_text(CODE)
    (root / "docs" / "note.md").write_text("Note *well*.\n")
    return root


def filled(root: Path, text: str, name: str = "docs/en/guide/page.md") -> str:
    includes = Includes(LocalFileSystem(), f"{root}/docs/en/")
    path = str(root / name)
    done = includes(path, text.encode()).decode()
    assert includes.pages == {path}
    return done


def block(code: str) -> str:
    return f"```python\n{code}\n```"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("[!INCLUDE [a note](../../note.md)]", "Note *well*."),
        ("[!include[](~/docs/note.md)]", "Note *well*."),
        ("[!code-python[Main](../../../src/a.py#L4-L5)]", block(MAIN)),
        ("[!code-python[](~/src/a.py?range=1,5)]", block("import app\n    return 1")),
        (':::code language="python" source="~/src/a.py" range="4-5":::', block(MAIN)),
        ("[a](../../note.md ':include')", "Note *well*."),
        ("[a](../../../src/a.py ':include :type=code python')", block(ALL)),
        ("{* ../../src/a.py hl[3] *}", block(ALL)),
        ("{* ../../src/a.py ln[1,4:5] hl[3] *}", block(f"import app\n{MAIN}")),
        ("{!> ../../src/a.py!}", block(ALL)),
        ('--8<-- "src/a.py"', block(ALL)),
        ('--8<-- "src/a.py:main"', block(MAIN)),
        ('-8<- "src/a.py:4:5"', block(MAIN)),
        ('--8<-- "src/a.py:5:"', block("return 1")),
        ('--8<-- "docs/note.md"', "Note *well*."),
        ("--8<--\nsrc/a.py:main\n\ndocs/note.md\n--8<--", f"{block(MAIN)}\nNote *well*."),
        ('{% include "../../src/a.py" %}', block(ALL)),
        ('{%- include-markdown "../note.md" start="x" -%}', None),
        ("{{#include ../../../src/a.py:main}}", block(MAIN)),
        ("{{#rustdoc_include ../../../src/a.py::1}}", block("import app")),
        ("<<< @/src/a.py{2}", block(ALL)),
        ("<!--@include: ../../note.md-->", "Note *well*."),
        ("```{literalinclude} /src/a.py\n:language: python\n:lines: 4-\n```", block(MAIN)),
        ("```{literalinclude} ../../../src/a.py\n:start-after: import app\n:end-before: return\n```",
         block("def main():")),
        (":::{include} ../../note.md\n:::", "Note *well*."),
        ("```{include} ../../note.md\n\n```", "Note *well*."),
        (":::{include} ../../note.md\n\n\n:::", "Note *well*."),
        ("```{literalinclude} /src/a.py\n---\nlanguage: python\nlines: 4-5\n---\n```", block(MAIN)),
    ],
)  # fmt: skip
def test_page_contains_its_includes(said, shown, repository):
    done = filled(repository, f"Before.\n\n{said}\n\nAfter.\n")
    assert done == f"Before.\n\n{shown or ''}\n\nAfter.\n"


def test_include_in_code_or_a_list_stays_inside_it(repository):
    text = '- Do:\n\n    ```python hl_lines="2"\n    --8<-- "src/a.py:main"\n    ```\n\n    --8<-- "docs/note.md"\n'
    shown = '- Do:\n\n    ```python hl_lines="2"\n    def main():\n        return 1\n    ```\n\n    Note *well*.\n'
    assert filled(repository, text) == shown


def test_sphinx_include_becomes_the_matching_directive(repository):
    said = ".. literalinclude:: ../../src/a.py\n   :language: python\n   :lines: 4-5\n\n"
    said += ".. include:: ../note.md\n   :parser: x\n"
    shown = "\n.. code-block:: python\n\n   def main():\n       return 1\n\n\n\n\nNote *well*.\n\n"
    assert filled(repository, said, "docs/en/guide/page.rst") == shown


def test_sphinx_include_starts_and_ends_a_paragraph(repository):
    (repository / "docs/part.rst").write_text("Part\n====\n\nText.\n")
    said = "Before.\n.. include:: ../../part.rst\n.. include:: ../../part.rst\nAfter."
    part = "\nPart\n====\n\nText.\n"
    assert filled(repository, said, "docs/en/guide/page.rst") == f"Before.\n{part}\n{part}\nAfter."


def test_fragment_without_a_format_is_page_text_unless_included_as_code(repository):
    (repository / "docs/part.rst.inc").write_text("Part\n====\n\n.. include:: note.md\n")
    (repository / "docs/LICENSE").write_text("Free.\n")
    said = ".. include:: ../../part.rst.inc\n.. include:: ../../LICENSE\n   :literal:\n"
    shown = "\nPart\n====\n\n\nNote *well*.\n\n\n.. code-block:: text\n\n   Free.\n"
    assert filled(repository, said, "docs/en/guide/page.rst").split() == shown.split()
    assert filled(repository, '--8<-- "docs/LICENSE"\n') == "Free.\n"


def test_component_imported_from_a_page_becomes_its_text(repository):
    (repository / "docs/_part.mdx").write_text("import Note from './note.md'\n\nA part.\n\n<Note />\n")
    said = "import Part from '@site/docs/\\_part.mdx'\n\n<Part of='it' />\n<Other />\n\n```jsx\n<Part />\n```\n"
    shown = said.replace("<Part of='it' />", "import Note from './note.md'\n\nA part.\n\nNote *well*.")
    assert filled(repository, said) == shown
    assert Includes(LocalFileSystem(), str(repository))("a.mdx", b"<Other />\n") == b"<Other />\n"


def test_file_imported_by_the_raw_loader_is_code(repository):
    said = "import A from '!!raw-loader!../../../src/a.py'\n\n<CodeBlock language={'py'}>{A}</CodeBlock>\n\n"
    said += "<CodeBlock>{B}</CodeBlock>\n"
    shown = said.replace("<CodeBlock language={'py'}>{A}</CodeBlock>", block(ALL.strip()))
    assert filled(repository, said) == shown


def test_file_imported_as_raw_text_is_code(repository):
    said = "import a from '../../../src/a.py?raw';\n\n<Code code={a} lang=\"py\" />\n<Code code={b} />\n"
    assert filled(repository, said) == said.replace('<Code code={a} lang="py" />', block(ALL))


def test_empty_include_is_removed_except_in_an_example(repository):
    text = '{* gone.py *}\nProse.\n\n```html\n{% include "header.html" %}\n```\n\n```md\n<<< @/src/a.py\n```\n'
    assert filled(repository, text) == text.removeprefix("{* gone.py *}")


def test_words_of_an_unreadable_include_stay_on_its_page(repository):
    said = '{% include note.html content="Restart the server." %}\n\n{% include gone.html %}\n\nText.\n'
    assert filled(repository, said) == said.replace("{% include gone.html %}", "")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("// #region part", "// #endregion part"),
        ("// #region part", "// #endregion"),
        ("// ANCHOR: part", "// ANCHOR_END: part"),
    ],
)
def test_region_is_found_between_its_markers_in_any_language(begin, end, repository):
    (repository / "src" / "a.ts").write_text(f"// #region part2\n0\n{begin}\nlet a\n{end}\nlet b\n")
    assert filled(repository, "<<< @/src/a.ts#part{1} [title]\n") == "```typescript\nlet a\n```\n"


@pytest.mark.parametrize("text", ['A `--8<-- "src/a.py"` in prose.', ';--8<-- "src/a.py"', "Plain.", "```\ncode\n```"])
def test_page_without_includes_is_unchanged(text, repository):
    includes, body = Includes(LocalFileSystem(), str(repository)), text.encode()
    assert includes(str(repository / "page.md"), body) is body and not includes.pages


@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd", "../../../etc/passwd", "../../../../../../../../../../etc/passwd", "../../../../secret.txt"),
        *("link.txt", "folder/secret.txt", ".git/config", "../../../.env", "loop.txt", "pipe.txt", "a\0b.txt", "docs"),
        *("x" * 300, "big.txt"),
    ],
)
def test_nothing_outside_the_repository_and_no_hidden_file_is_read(name, repository, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    guide = repository / "docs" / "en" / "guide"
    for hidden in (repository / ".git" / "config", repository / ".env", repository / ".git" / "link.txt"):
        hidden.write_text("secret")
    (guide / "link.txt").symlink_to(tmp_path / "secret.txt")
    (guide / "folder").symlink_to(tmp_path)
    (guide / "loop.txt").symlink_to(guide / "loop.txt")
    (guide / "big.txt").write_text("secret" * MOST_BYTES)
    os.mkfifo(guide / "pipe.txt")
    assert filled(repository, f"{{* {name} *}}\n--8<-- '{name}'\n").strip() == ""


def test_includes_outside_a_folder_without_a_repository_are_not_read(repository):
    (repository / ".git").rmdir()
    assert filled(repository, '--8<-- "src/a.py"\n') == "\n"
    (repository / "docs" / "en" / "b.py").write_text("b = 1\n")
    assert filled(repository, '--8<-- "b.py"\n') == f"{block('b = 1')}\n"


@pytest.mark.parametrize("name", ["PKG-INFO", "package.json"])
def test_unpacked_release_is_read_like_a_repository(name, repository, monkeypatch):
    (repository / ".git").rmdir()
    (repository / name).touch()
    assert filled(repository, '--8<-- "src/a.py"\n') != "\n"
    assert filled(repository, '--8<-- "../../../../secret.txt"\n') == "\n"
    monkeypatch.setenv("HOME", str(repository))
    assert filled(repository, '--8<-- "src/a.py"\n') == "\n"


def test_mutual_and_excessive_includes_end(repository, monkeypatch):
    most = MOST_BYTES // 10
    monkeypatch.setattr("pipelines.indexing.folders.includes.MOST_BYTES", most)
    for name, other in (("one", "two"), ("two", "one")):
        (repository / f"{name}.md").write_text(f'{name.title()}.\n--8<-- "{other}.md"\n')
    assert filled(repository, '--8<-- "one.md"\n').split() == ["One.", "Two."]
    (repository / "large.txt").write_text("x" * (most // 3))
    done = filled(repository, '--8<-- "large.txt"\n' * 9)
    assert len(done) < 1.1 * most
    (repository / "x.py").write_text("x\n")
    assert filled(repository, "{* x.py *}\n" * 3_000).count("x\n") < 1_000
    (repository / "many.txt").write_text("y" * 1000)
    assert len(filled(repository, "{* many.txt ln[" + "1," * 9999 + "] *}\n")) < 100_000


def test_bucket_is_read_only_below_its_root(repository):
    system = SubTreeFileSystem(str(repository), LocalFileSystem())
    includes = Includes(system, "docs/")
    assert includes("docs/en/p.md", b'--8<-- "note.md"\n--8<-- "src/a.py"') == b"Note *well*.\n"


def test_asciidoc_includes_text_verbatim(repository):
    module = repository / "docs" / "en" / "modules" / "ROOT"
    for folder in ("pages/sub", "partials", "examples"):
        (module / folder).mkdir(parents=True)
    (module / "partials" / "a.adoc").write_text("One.\n// tag::b[]\nTwo.\n// end::b[]\n")
    (module / "examples" / "c.py").write_text(CODE)
    text = (
        "include::partial$a.adoc[tag=b]\n\n----\ninclude::ROOT:example$c.py[lines=1..1]\n----\n\n"
        "----\ninclude::gone.py[]\n----\n\ninclude::gone.adoc[]\n"
    )
    page = "docs/en/modules/ROOT/pages/sub/p.adoc"
    assert filled(repository, text, page) == "Two.\n\n----\nimport app\n----\n\n----\n\n----\n\n\n"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("tags=a;c", "1\n3\n4"),
        ('tags="a,c"', "1\n3\n4"),
        ("tags=!b", "0\n1\n4\n5\n== Title"),
        ("tag=**;!b", "0\n1\n4\n5\n== Title"),
        ("tag=*", "1\n2\n3\n4\n== Title"),
        ("leveloffset=+2,tag=d", "==== Title"),
        ('tags="!*"', "0\n5"),
        ("tag=gone", ""),
    ],
)
def test_asciidoc_include_chooses_tags_and_levels(said, shown, repository):
    lines = ["0", "// tag::a[]", "1", "// end::a[]", "// tag::b[]", "2", "// tag::c[]", "3", "// end::b[]", "4"]
    lines += ["// end::c[]", "5", "// tag::d[]", "== Title", "// end::d[]"]
    (repository / "docs" / "a.adoc").write_text("\n".join(lines))
    assert filled(repository, f"include::a.adoc[{said}]\n", "docs/en/guide/page.adoc") == f"{shown}\n"


def test_headings_of_nested_asciidoc_includes_move_down_together(repository):
    (repository / "docs" / "a.adoc").write_text("== A\n\n----\n== listed\n----\n\ninclude::b.adoc[leveloffset=+1]\n")
    (repository / "docs" / "b.adoc").write_text("== B\n")
    shown = "=== A\n\n----\n== listed\n----\n\n==== B\n"
    assert filled(repository, "include::a.adoc[leveloffset=+1]\n", "docs/en/guide/page.adoc") == shown


def test_underlined_titles_of_restructured_text_are_no_fences(repository):
    text = "A\n~~~~\n\n.. literalinclude:: /src/a.py\n   :lines: 1\n\nB\n~~~~\n"
    shown = "A\n~~~~\n\n\n.. code-block:: python\n\n   import app\n\n\n\nB\n~~~~\n"
    assert filled(repository, text, "docs/en/guide/page.rst") == shown


def test_example_of_an_include_in_restructured_text_stays(repository):
    example = "Write::\n\n   .. include:: ../../note.md\n\n"
    done = filled(repository, f"{example}.. include:: ../../note.md\n", "docs/en/guide/page.rst")
    assert done == f"{example}\nNote *well*.\n\n"


def test_account_without_a_home_folder_reads_includes(repository, monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)
    assert filled(repository, '--8<-- "docs/note.md"\n') == "Note *well*.\n"
