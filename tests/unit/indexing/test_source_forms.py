"""Templates, components, notes and notebooks give the text for readers, not the parts for programs."""

import json

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.page.plain import plain
from pipelines.page.tree import Code, Document, Table, leaves_of
from pipelines.records import Page
from tests.kit.sectioning import text_of


def read(text: str, kind: str = "text/markdown") -> Document:
    return read_page(Page("https://x.org/p", text.encode(), kind))


def shown(text: str, kind: str = "text/markdown") -> str:
    return text_of(*read(text, kind).sections)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('A {{< glossary_tooltip text="Pod" term_id="pod" >}} is small.', "A Pod is small."),
        ('{{< glossary_tooltip text="Pod" >}} is small.', "Pod is small."),
        ('The {{< glossary_tooltip term_id="kubelet" >}} runs.', "The kubelet runs."),
        ('{{< button text="Get the agent" url="/x" >}}', "Get the agent"),
        # A tag around words of a sentence; its label is no title.
        (
            'Set\n{{<hover label="a" line="2">}}Size{{</hover >}} and\n{{<hover label="a">}}Name{{</hover>}}.',
            "Set Size and Name.",
        ),
        ('Set the\n{{<hover label="a">}}size{{</hover>}}\nfirst.', "Set the size first."),
        ('The {{<hover label="a">}}size{{</hover>}} is big.', "The size is big."),
        ('{{<hover label="a">}}Size{{</hover>}} is big.', "Size is big."),
        ('{{< tab "Linux" >}}Words.{{< /tab >}}', "Linux\n\nWords."),
        ('{% include note.html content="Restart the **server** now." %}', "Restart the server now."),
        ('{% include tip.html message="Keep it." type="danger" %}', "Keep it."),
        ("{{< skew currentVersion >}} is new.", "is new."),
        # Values without names.
        ('{{< button "/start" "Get started now" "large" >}}', "Get started now"),
        ('{% callout "info", "Read this first." %}Words.{% endcallout %}', "Read this first.\n\nWords."),
        ('{% asset_img a.jpg "A small cat" %}', "A small cat"),
        ('{{< youtube "dQw4w9 WgXcQ" >}}{{< icon "fa fa-x" >}}{{< ref "A/b c" >}}B.', "B."),
        (
            "{% tabs one %}\n<!-- tab First tab@icon -->\nA.\n<!-- endtab -->\n<!-- tab B -->\nC.\n{% endtabs %}",
            "First tab:\n\nA.\n\nB:\n\nC.",
        ),
    ],
)
def test_shortcode_leaves_its_readable_attributes_in_place(text, words):
    assert shown(f"Words.\n\n{text}\n") == f"Words.\n\n{words}"


@pytest.mark.parametrize(
    ("code", "shown_code"),
    [
        ("{% raw %}\n{{ page.title }}\n{% endraw %}", "{{ page.title }}"),
        ("<b>{%- raw -%}{% if x %}{%- endraw -%}</b>", "<b>{% if x %}</b>"),
        ("{% raw %}{{ a }}{% endraw %} and {% raw %}{{ b }}{% endraw %}", "{{ a }} and {{ b }}"),
        ("{% raw %}\nplain\n{% endraw %}", "{% raw %}\nplain\n{% endraw %}"),
        ("{% raw %}\n{{ open }}", "{% raw %}\n{{ open }}"),
    ],
)
def test_code_is_shown_without_template_escaping_tags(code, shown_code):
    assert shown(f"Words.\n\n```\n{code}\n```\n") == f"Words.\n{shown_code}"


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("<xref:System.String>", "String"),
        ("<xref:System.String.Format%2A?displayProperty=nameWithType>", "String.Format"),
        ("<xref:System.IO.File.Open(System.String,System.IO.FileMode)>", "Open(String,FileMode)"),
        ("<xref:System.Collections.Generic.List%601?displayProperty=fullName>", "System.Collections.Generic.List"),
        ("<xref:System.Uri.%23ctor%2A>", "Uri"),
    ],
)
def test_docfx_reference_is_shown_by_its_name(reference, name):
    assert shown(f"Call {reference} first.") == f"Call {name} first."


@pytest.mark.parametrize("kind", ["text/markdown", "text/x-vue-markdown", "text/mdx"])
def test_unknown_component_leaves_its_readable_attributes(kind):
    text = 'Called first. <Badge type="danger" text="deprecated" />\n\n<Notice body="Do not run it twice." />\n'
    assert shown(text, kind) == "Called first. deprecated\n\nDo not run it twice."


def test_component_leaves_no_classes_and_no_paths():
    assert (
        shown('Words <Icon className="flex items center" path="M0 0 L1 1" src="/a b c.png" /> here.') == "Words here."
    )


@pytest.mark.parametrize(
    ("attributes", "anchor"),
    [
        (".unnumbered #own", "own"), ("#own .hidden", "own"), ('id="own"', "own"), (": #own", "own"),
        ('#own data-toc-label="Copy"', "own"), (".tabset", "install-it"),
    ],
)  # fmt: skip
def test_heading_attributes_set_its_id_and_do_not_appear_in_its_title(attributes, anchor):
    (section,) = read(f"# Guide\n\n## Install it {{{attributes}}}\n\nText.\n").sections
    assert (section.anchor, section.headings) == (anchor, ("Guide", "Install it"))


@pytest.mark.parametrize("kind", ["text/markdown", "text/mdx"])
@pytest.mark.parametrize(
    "formula",
    [r"$\frac{a}{b}$", r"$w_i * x_i * y_i$", r"$a_1<b and c>d$", r"$\{w_i\}$", r"$10^{-6}$", r"$\mathbf{x}_1^*$"],
)
def test_formula_is_read_as_written(kind, formula):
    assert shown(f"It is {formula} now.\n", kind) == f"It is {formula} now."


@pytest.mark.parametrize("kind", ["text/markdown", "text/mdx"])
def test_multi_line_formula_keeps_its_signs_and_a_price_is_no_formula(kind):
    assert shown("$$\na & b \\\\ c\n$$\n", kind) == r"$$ a & b \\ c $$"
    assert shown("It costs $5 or $6, *not* $7.\n", kind) == "It costs $5 or $6, not $7."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Read [[Restore Guide|how to restore]] and [[Keys#Rotate]].", "Read how to restore and Keys > Rotate."),
        ("It is so. %%ask whether it is%%", "It is so."),
        ("One.\n\n%%\nAsk Mara.\n\nIs it so?\n%%\nTwo.", "One.\n\nTwo."),
        ("- One\n\n  %%\n  Ask.\n  %%\n- Two\n\n%%\nNo end.", "- One\n- Two\n\n%% No end."),
        ("It is ==important==. ^block-id", "It is important."),
        ("![[diagram.png]] Words.", "Words."),
        ("Set a[[0]] to `[[x]]` if a == b and c == d.", "Set a[[0]] to [[x]] if a == b and c == d."),
    ],
)
def test_links_comments_and_callouts_are_read_as_their_app_shows_them(text, words):
    assert shown(text) == words


def test_docfx_tabs_and_images_are_read_and_includes_are_not():
    text = (
        "# Install\n\n[!INCLUDE [preview](a.md)]\n\n# [Linux](#tab/linux)\n\nRun `apt`.\n\n"
        "# [Windows](#tab/windows)\n\nRun `winget`.\n\n---\n\n"
        ':::image type="content" source="a.png" alt-text="The portal.":::\n\nLast.\n'
    )
    (section,) = read(text).sections
    assert text_of(section) == "Linux:\n\nRun apt.\n\nWindows:\n\nRun winget.\n\nThe portal.\n\nLast."


def test_asciidoc_raised_lowered_struck_text_and_csv_tables_are_read():
    text = "= T\n\nUp to 2^32^ of H~2~O. [line-through]#Old price 5#, new 7.\n\n,===\nName,Port\nweb,80\n,===\n"
    assert shown(text, "text/asciidoc") == "Up to 2^32 of H2O. ~~Old price 5~~, new 7.\nName | Port\nweb | 80"


def test_asciidoc_formulas_and_keys_keep_their_signs():
    text = "It is stem:[a_1 < b*c*d] or kbd:[Ctrl+<].\n\n[stem]\n++++\nx < y & z\n++++\n"
    assert shown(text, "text/asciidoc") == "It is a_1 < b*c*d or Ctrl+<.\n\nx < y & z"


@pytest.mark.parametrize(
    ("style", "lines"),
    [
        ("format=csv", '|===\nweb,"80, 81"\n|==='),
        ('"format=csv",separator=;', "|===\nweb;80, 81\n|==="),
        ('format="dsv"', "|===\nweb:80, 81\n|==="),
        ("cols=2*", ',===\nweb,"80, 81"\n,==='),
    ],
)
def test_asciidoc_table_of_separated_values_is_a_table(style, lines):
    (table,) = read(f"[{style}]\n{lines}\n", "text/asciidoc").sections[0].content
    assert isinstance(table, Table) and [[plain(cell) for cell in row] for row in table.rows] == [["web", "80, 81"]]


def test_state_of_an_asciidoc_task_is_shown():
    text = "* [x] Signed\n* [*] Sent\n* [ ] Paid\n"
    assert shown(text, "text/asciidoc") == "- [x] Signed\n- [x] Sent\n- [ ] Paid"


def test_block_in_an_asciidoc_entry_is_code_if_declared():
    text = "= T\n\nLinux::\n+\n--\n[source,bash]\n----\napt install\n----\n--\nWindows:: Run it.\n"
    assert shown(text, "text/asciidoc") == "Linux:\napt install\nWindows:\nRun it."


def notebook(**data: str) -> str:
    output = {"output_type": "execute_result", "metadata": {}, "data": data, "execution_count": 1}
    cell = {"cell_type": "code", "source": "show()", "metadata": {}, "outputs": [output], "execution_count": 1}
    page = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}
    return shown(json.dumps(page), "application/x-ipynb+json")


def test_most_readable_form_of_an_output_is_read():
    named = "<IPython.core.display.Markdown object>"
    assert notebook(**{"text/plain": "'4.2'", "application/vnd.colab+json": "{}"}) == "show()\n'4.2'"
    assert notebook(**{"text/plain": named, "text/markdown": "It is **7**."}) == "show()\nIt is 7."
    assert notebook(**{"text/plain": "<X object at 0x1>", "text/html": "<p>Quota: <b>5</b></p>"}) == "show()\nQuota: 5"
    assert notebook(**{"text/plain": " 2\nx  + 1", "text/latex": "$x^{2} + 1$"}) == "show()\n$x^{2} + 1$"
    assert notebook(**{"text/plain": "<Figure size 1x1>", "image/png": "abc"}) == "show()"


HTML_BEFORE = {
    "a closing tag of a block": '<div class="example" markdown="1">\n\nShown.\n\n</div>\n',
    "an opening tag of a block": '<div class="example" markdown="1">\n',
    "an element on its line": "<p>Shown.</p>\n",
}


@pytest.mark.parametrize("kind", ["text/markdown", "text/x-mkdocs", "text/x-vue-markdown"])
@pytest.mark.parametrize("before", HTML_BEFORE.values(), ids=HTML_BEFORE)
def test_fence_below_a_line_of_html_is_code(before, kind):
    found = read(f"# T\n\n{before}```js\nlet a = 1;\n\nlet b = 2;\n```\n", kind)
    assert [leaf.text for leaf in leaves_of(found.sections[-1].content) if isinstance(leaf, Code)] == [
        "let a = 1;\n\nlet b = 2;"
    ]


def test_markdown_inside_html_is_read_if_enabled():
    found = read('# T\n\n<div class="box" markdown="1">\nTake **this** one.\n</div>\n')
    assert text_of(*found.sections) == "Take this one."
    assert "**" not in text_of(*read('# T\n\n<section markdown="block">\n- **one**\n</section>\n').sections)


def anchors(text: str, kind: str) -> list[str]:
    return [section.anchor for section in read(text, kind).sections]


def test_ids_numbered_by_docutils_are_numbered_in_myst_too():
    twice = "# T\n\nText.\n\n## A\n\nText.\n\n## B\n\nText.\n\n## A\n\nText.\n\n## B\n\nText.\n"
    assert anchors(twice, "text/x-myst") == ["t", "a", "b", "id1", "id2"]
    assert anchors("# 安装\n\n文字。\n\n## 步骤\n\n文字。\n", "text/x-myst") == ["id1", "id2"]
    noted = "# T\n\nText[^1] and[^2].\n\n## A\n\nText.\n\n## A\n\nText.\n\n[^1]: One.\n[^2]: Two.\n"
    assert anchors(noted, "text/x-myst")[:3] == ["t", "a", "id3"]
    assert anchors(twice, "text/markdown") == ["t", "a", "b", "a-1", "b-1"]


def test_top_headings_of_docusaurus_have_no_id_as_on_its_site():
    text = "# A\n\na\n\n# B\n\nb\n\n## B\n\nc\n"
    assert anchors(text, "text/x-docusaurus") == ["", "", "b-1"]
    assert anchors(text, "text/mdx") == ["a", "b", "b-1"]


def test_title_of_an_asciidoc_page_has_no_id_as_on_its_site():
    assert anchors("= T\n\nText.\n\n== A\n\nText.\n", "text/asciidoc") == ["", "_a"]
    assert anchors("[#own]\n= T\n\nText.\n", "text/asciidoc") == ["own"]
    assert anchors("== A\n\nText.\n", "text/asciidoc") == ["_a"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# T\n\n```ansi\n\x1b[32m+ done\x1b[0m in \x1b[1;31m2 s\x1b[39m\n```\n", "text/markdown"),
        ("T\n=\n\n::\n\n  \x1b[32m+ done\x1b[0m in 2 s\n", "text/x-rst"),
        ("<main><h1>T</h1><pre>\x1b[32m+ done\x1b[0m in 2 s</pre></main>", "text/html"),
    ],
)
def test_terminal_colors_are_removed(text, kind):
    assert shown(text, kind) == "+ done in 2 s"


def test_objects_in_the_attributes_of_a_component_are_a_list():
    themes = "{[ /* title: '{' */ { title: 'It\\'s {dark}', size: { label: \"A < B\", w: 'x' } }, { src: 'y.png' } ]}"
    assert shown(f"Text.\n\n<Themes\n  title='Themes'\n  of={themes}\n/>\n\nMore.\n", "text/mdx") == (
        "Text.\n\nThemes\n- It's {dark}\n- A < B\nMore."
    )


MARKED = {
    "Shiki": ("js", "a() // [!code highlight]\n// [!code word:b:1]\nb() # [!!code focus]", "a()\nb() # [!code focus]"),
    "a change in Shiki": ("js", "a() // [!code --]\nb()  /* [!code ++:2] */\nc()\nd()", "-a()\n+b()\n+c()\n d()"),
    "Docusaurus": ("js", "// highlight-next-line\na()\n  {/* highlight-start */}\nb()\n", "a()\nb()"),
    "Expressive Code": ("js {9} del={1} ins={2-3}", "a()\nb()\nc()\n\nd()", "-a()\n+b()\n+c()\n\n d()"),
}


@pytest.mark.parametrize(("info", "code", "lines"), MARKED.values(), ids=MARKED)
def test_notation_of_marked_lines_is_no_code(info, code, lines):
    assert shown(f"Text.\n\n```{info}\n{code}\n```\n", "text/mdx") == f"Text.\n{lines}"


def test_heading_of_fumadocs_may_set_its_id():
    document = read("## One two [#own]\n\na\n\n## Three [toc]\n\nb\n\n## Fix [#12]\n\nc\n", "text/mdx")
    found = [(section.anchor, section.headings[-1]) for section in document.sections]
    assert found == [("own", "One two"), ("three", "Three"), ("fix-12", "Fix [#12]")]


def test_empty_lines_may_come_before_front_matter():
    document = read("\n\n---\ntitle: The title\n---\n\nWords.\n")
    assert document.title == "The title" and text_of(*document.sections) == "Words."
    assert shown("\n---\n\nWords.\n\n---\n") == "Words."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A {{ page.title }} b {{ figure(alt='The words', src=\"a.png\") }} c.", "A b The words c."),
        ("A [b]({{ '/c' | url }}) and [d]({{ path('e f') }}).", "A b and d."),
        (
            "{%- set c %}\nx = {% raw %}{{ 1 }}{% endraw %}\n{%- endset %}\n{{ c | highlight('py') | safe }}\n\nB.",
            "x = {{ 1 }}\nB.",
        ),
        ("{% set a %}One **two**.{% endset %}\n\nB {{ a | safe }} {{ c }}", "B One two."),
        ('{% quote(author="A. L.") %}\nWords.\n{% end %}', "Words."),
        ("`{{ a }}`", "{{ a }}"),
        (
            "```\n{% raw %}\n{% set a %}x{% endset %}{{ a }}\n{% endraw %}\n```\n\nB {{ a }}",
            "{% set a %}x{% endset %}{{ a }}\nB",
        ),
        ("{# no words #}\nWords.", "Words."),
    ],
)
def test_values_that_only_a_template_knows_are_left_out(text, words):
    assert " ".join(shown(f"Words.\n\n{text}\n", "text/x-templated-markdown").split()) == " ".join(
        f"Words.\n\n{words}".split()
    )


QUARTO = """---
title: "T"
---

::: {.callout-note title="Ahead"}
In the box.
:::

::: callout-warning
Careful.
:::

::: {.panel-tabset}
```{r, echo=FALSE}
hidden()
```

```{python}
#| label: x
y = 1
```

```{python}
#| echo: false
z = 1
```

```{{r}}
shown
```

```{=html}
<b>raw</b>
```
:::

Some [small `x` and [y]]{.sc}, [a](b.html){.btn}.

## 2. Foo_a.bar baz! {.unnumbered}

{{< var version >}} is new.
"""


def test_quarto_is_read_as_it_is_published():
    document = read(QUARTO, "text/x-quarto")
    assert document.title == "T" and [section.anchor for section in document.sections] == ["", "foo_a.bar-baz"]
    assert " ".join(text_of(*document.sections).split()) == (
        "Ahead In the box. Warning Careful. y = 1 shown Some small x and [y], a. is new."
    )


GRID = """
+-----+------------+
| A   | B          |
+:====+============+
| x   | ``` {.bash}|
|     | touch a    |
|     | ```        |
+-----+------------+
| - a | *b* `c`    |
| - d |            |
+-----+------------+
"""


def test_grid_table_has_blocks_in_its_cells():
    found = shown(f"Words.\n{GRID}\nAfter `a`.\n", "text/x-quarto")
    assert found == "Words.\nx | touch a\na d | b c\nAfter a."
    assert shown("+--+\n| a\n+-+", "text/x-quarto").startswith("+--+")


@pytest.mark.parametrize(
    ("front", "cell", "words"),
    [
        ("execute:\n  warning: false\n  echo: false\n", "", "Words."),
        ("execute: {echo: false}\n", "", "Words."),
        ("execute:\n  echo: true\n", "", "x = 1\nWords."),
        ("title: T\n", "```{r, include=FALSE}\nopts_chunk$set(dim = c(6, 4), echo = FALSE)\n```\n", "Words."),
        ("title: T\n", "```{r}\nopts_chunk$set(echo = TRUE)\n```\n", "opts_chunk$set(echo = TRUE)\nx = 1\nWords."),
    ],
)
def test_page_may_hide_the_code_of_its_cells(front, cell, words):
    text = f"---\n{front}---\n\n{cell}\n```{{r}}\nx = 1\n```\n\nWords.\n"
    assert shown(text, "text/x-quarto") == words
    own = text.replace("{r}\nx", "{r, echo=TRUE}\nx")
    assert "x = 1" in shown(own, "text/x-quarto")


@pytest.mark.parametrize("info", ["@example; continued = true", "@repl a; b = 1", "jldoctest; output = false"])
def test_options_of_a_julia_block_are_not_its_kind(info):
    (section,) = read(f"```{info}\nusing Plots # hide\nplot(1)\n```\n", "text/x-documenter").sections
    assert section.content == [Code("plot(1)", "julia")]


def test_documenter_is_read_as_it_is_published():
    document = read(
        "# [The guide](@id own place)\n\nSee [`plot`](@ref) and [others](@ref attributes).\n\n```@docs\nplot\n```\n\n"
        "```@example a\nusing Plots # hide\nplot(1)\n```\n\n## Logarithmic Scale & Plots\n\nWords.\n",
        "text/x-documenter",
    )
    assert document.title == "The guide"
    assert [section.anchor for section in document.sections] == ["own-place", "Logarithmic-Scale-and-Plots"]
    assert text_of(*document.sections) == "See plot and others.\nplot(1)\nWords."


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("text/x-docusaurus", "```mdx-code-block\n<Tabs>\n```\n\n- One\n\n```mdx-code-block\n</Tabs>\n```", "- One"),
        (
            "text/x-docusaurus",
            "````mdx-code-block\n<Tabs>\n```js\nx\n```\n</Tabs>\n````\n\n```mdx-code-block\n<A />\n```\nB",
            "x\nB",
        ),
        ("text/x-docusaurus", ":::note[The **title** `x`]\n\na\n\n:::", "The title x\na"),
        ("text/markdown", "::: warning Note that:\n\na\n\n:::", "Note that:\na"),
        ("text/x-quarto", "::: {.callout-note} :::\n\na\n\n:::", "Note\na"),
        ("text/x-quarto", "::: {.column-page}\n| a | b |\n|---|---|\n| c | d |\n:::\n", "c | d"),
        ("text/x-myst", ":::{myst-example}\n| a | b |\n|---|---|\n| c | d |\n:::\n", "c | d"),
        ("text/x-quarto", "::: Warning ::::::\n\na\n\n:::", "Warning\na"),
        ("text/markdown", ":::tip My tip {#own .a}\n\na\n\n:::", "My tip\na"),
        ("text/x-vue-markdown", "::: tip My :bulb: {{ value }} tip\n\na\n\n:::", "My 💡 tip\na"),
        (
            "text/x-myst",
            "---\nmyst:\n  substitutions:\n    a-b: one **two**\n---\n\nHere {{ a-b }} {{ c }}.",
            "Here one two {{ c }}.",
        ),
        (
            "text/x-myst",
            "---\nmyst: {substitutions: {a: one}}\n---\n\n```jinja\n{{ a }}\n```\n\n```{note}\n{{ a }} `{{ a }}`\n```",
            "{{ a }}\nNote\none {{ a }}",
        ),
    ],
)
def test_wrapped_components_titles_and_substitutions_are_read_as_published(kind, text, words):
    assert shown(text, kind) == words


def test_removed_input_and_output_of_a_cell_are_not_read():
    output = {"output_type": "stream", "name": "stdout", "text": "printed"}
    cells = [
        {"cell_type": "code", "metadata": {"tags": [tag]}, "source": "x = 1", "outputs": [output], "execution_count": 1}
        for tag in ("remove-input", "remove_output")
    ]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    assert shown(json.dumps(notebook), "application/x-ipynb+json") == "printed\nx = 1"
