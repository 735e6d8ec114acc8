"""Markdown gets the anchors, boxes and directives of its generator; MDX keeps its text."""

import pytest

from pipelines.indexing.reading.formats.markdown import dialect_of, render
from pipelines.indexing.reading.read import read_page
from pipelines.page.parser import MOST_FILLED
from pipelines.page.tree import Document, Paragraph, Span
from pipelines.records import Page
from tests.kit.blocks import blocks_of


def read(text: str, kind: str) -> Document:
    return read_page(Page("https://x.org/p", text.encode(), kind))


def words(document: Document) -> str:
    return "\n\n".join(block.text for section in document.sections for block in blocks_of(section))


@pytest.mark.parametrize(
    ("kind", "anchors"),
    [
        ("text/markdown", ["whats-new--old", "über", "whats-new--old-1", "mine"]),
        ("text/mdx", ["whats-new--old", "über", "whats-new--old-1", "mine"]),
        ("text/x-mkdocs", ["whats-new-old", "uber", "whats-new-old_1", "mine"]),
        ("text/x-vue-markdown", ["what-s-new-old", "uber", "what-s-new-old-1", "mine"]),
        ("text/x-myst", ["what-s-new-old", "uber", "id1", "mine"]),
    ],
)
def test_headings_have_the_ids_of_the_generator(kind, anchors):
    text = (
        "# What's new & old\n\na\n\n## Über\n\nb | b\n--|--\n1 | 2\n\n## What's new & old\n\nc\n\n## Own {#mine}\n\nd\n"
    )
    document = read(f"---\ntitle: The guide\n---\n{text}", kind)
    assert document.title == "The guide"
    assert [section.anchor for section in document.sections] == anchors
    assert blocks_of(document.sections[1])[0].header == "b | b" and document.sections[3].headings[-1] == "Own"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text/markdown", ":::tip[Boxed title]\n\nBoxed **words**.\n\n:::"),
        ("text/markdown", '!!! note "Boxed title"\n\n    Boxed **words**.\n'),
        ("text/markdown", "> [!TIP] Boxed title\n> Boxed **words**."),
        ("text/markdown", '{% hint title="Boxed title" %}\nBoxed **words**.\n{% endhint %}'),
        ("text/markdown", "{{% alert color='red' title='Boxed title' %}} Boxed **words**. {{% /alert %}}"),
        ("text/x-mkdocs", "/// note | Boxed title\n\nBoxed **words**.\n\n///"),
        ("text/x-mkdocs", '=== "Boxed title"\n\n    Boxed **words**.\n'),
        ("text/x-myst", "```{note} Boxed title\n:class: x\n\nBoxed **words**.\n```"),
        ("text/x-myst", ":::{dropdown} Boxed title\nBoxed **words**.\n:::"),
        ("text/mdx", '<Card title="Boxed title" onClick={() => go("/x>y")}>\n\nBoxed **words**.\n\n</Card>'),
        ("text/mdx", "<details>\n<summary>Boxed title</summary>\n    Boxed **words**.\n</details>"),
    ],
)
def test_box_keeps_its_title_and_words(kind, text):
    assert words(read(f"Before.\n\n{text}\n\nAfter.\n", kind)) == "Before.\n\nBoxed title\n\nBoxed words.\n\nAfter."


def test_link_with_an_unfilled_template_keeps_its_words():
    (section,) = read("See [queues](/docs/{{version}}/queues#a) and [all](/docs/all).", "text/markdown").sections
    assert section.content == [
        Paragraph((Span("See queues and "), Span("all", target="https://x.org/docs/all"), Span(".")))
    ]


def test_template_tags_are_removed_except_in_code():
    text = (
        '{% tabs %}\nRun it, see [pages]({{< ref "other.md" >}}).\n{% endtabs %}\n\n'
        'Write `{% raw %}`:\n\n```jinja title="a page.html"\n{% block x %}\n```\n'
    )
    document = read(text, "text/markdown")
    assert words(document) == "Run it, see pages.\n\nWrite {% raw %}:\n\na page.html:\n\n{% block x %}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("+++\ntitle = 'Own'\nweight = 3\n+++\nWords.", "Words."),
        ("{% highlight ruby linenos %}\n# a\n  b\n{% endhighlight %}", "# a\n  b"),
        ("{% codeblock lang:js %}\n# a\n  b\n{% endcodeblock %}", "# a\n  b"),
        ('{{< code file="a.toml" lang="toml" >}}\n# a\n  b\n{{< /code >}}', "# a\n  b"),
        ('{% code title="a.js" %}\n```js\n# a\n  b\n```\n{% endcode %}', "a.js\n\n# a\n  b"),
        ("```liquid\n{% highlight a %}\nb\n{% endhighlight %}\n```", "{% highlight a %}\nb\n{% endhighlight %}"),
        ('{{< highlight go "a=1" >}}\n# a\n  b\n{{< /highlight >}}', "# a\n  b"),
        (
            '{{% tab name="Linux" %}}\nWords.\n{{% /tab %}}\n{{< tab "macOS" >}}More.{{< /tab >}}',
            "Linux\n\nWords.\n\nmacOS\n\nMore.",
        ),
        ("::: code-group\n```js [a.js]\none\n```\n:::", "a.js:\n\none"),
        ('```yaml tab="File"\none\n```', "File:\n\none"),
        ("```js{1,3}[a.js]\none\n```\n\n```js[b.js]\ntwo\n```", "a.js:\n\none\n\nb.js:\n\ntwo"),
        ("```rust,editable\n# fn main() {\nlet x = 1;\n#\n#[test]\n# }\n```", "let x = 1;\n#[test]"),
        ("{{#title A book}}\n\nOne {{#include a.md}} two, `{{#title}}`.", "One two, {{#title}}."),
        (
            '[One]({{ site.baseurl }}/a/) {{ "/b" | relative_url }}{{site.url}}/, `{{ site.url }}`',
            "One /b/, {{ site.url }}",
        ),
        ("[[toc]]\n\n[TOC]\n\nWords.", "Words."),
        ('Write {{</* ref "a" */>}}.\n\n```\n{{%/* b */%}}\n```', 'Write {{< ref "a" >}}.\n\n{{% b %}}'),
        ('{{< tabs id="a"\n  title="Both" >}}\nOne.\n{{< /tabs >}}', "Both\n\nOne."),
        ('{% include b.html\n  alt="A box" %}\nOne 100%.', "A box\n\nOne 100%."),
        ("* Contents\n{:toc}\n\nWords{% comment %} hidden {% endcomment %}.", "Words."),
    ],
)
def test_markdown_extensions_are_read_as_generators_publish_them(text, shown):
    assert words(read(text, "text/markdown")) == shown


@pytest.mark.parametrize("info", ["rust,editable", "rust{1,3}", "{.rust #id}", "rust:line-numbers", "rust title=a.rs"])
def test_first_word_of_a_fence_is_its_language(info):
    assert blocks_of(read(f"```{info}\nlet x = 1;\n```\n", "text/markdown").sections[0])[-1].language == "rust"


def test_untitled_page_is_named_by_the_words_of_its_file():
    for name, title in {"event-hooks.md": "Event hooks", "a_b_2/": "A b 2", "os.path.md": "os.path.md"}.items():
        page = Page(f"https://x.org/docs/{name}", b"Text of the page.\n", "text/markdown")
        assert read_page(page).title == title


def test_empty_page_with_a_title_is_no_failure():
    document = read("---\ntitle: Guides\nweight: 3\n---\n{{< children >}}\n", "text/markdown")
    assert (document.title, document.sections) == ("Guides", ())


def test_vue_interpolations_are_removed_except_in_code():
    text = "Words {{ page.title }} and `{{ code }}`.\n\n```\n{{ kept }}\n```\n"
    assert words(read(text, "text/x-vue-markdown")) == "Words and {{ code }}.\n\n{{ kept }}"


def test_heading_id_can_be_below_the_heading():
    assert read("## One\n{: #own .no_toc }\n\nWords.\n", "text/markdown").sections[-1].anchor == "own"


MDX = """---
title: Components
---
import Tabs from '@theme/Tabs';
import {
  One,
  Two,
} from './parts';

export const Colour = ({children}) => (
  <span style={{color: 'red'}}>{children}</span>

);

# Components

{/* A comment. */} <!-- Another comment. -->

Press <Colour value={1 > 0}>the red button</Colour>, or `<Kept a={1}>`; 3 < 4 and {"quoted words"}{count}.

<Tabs>
  <TabItem value="npm" label="With npm">

```bash
npm install <package> {name}
```

  </TabItem>
</Tabs>

import the package by hand.
from tests.kit.blocks import blocks_of

## Own id {/* #mine */}

<Video src="x.mp4" />

Last words.
"""


@pytest.mark.parametrize("kind", ["text/markdown", "text/mdx", "text/x-mkdocs"])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Use [`Field`][pydantic.fields.Field] or [`dump`][].", "Use Field or dump."),
        ("The [own *page*][here].\n\n[here]: /there\n", "The own page."),
        ("A cell, m[i][j] or [0][1], and [x] or ![i][j].", "A cell, m[i][j] or [0][1], and [x] or ![i][j]."),
        ("`[a][b]` is code.", "[a][b] is code."),
    ],
)
def test_undefined_label_is_not_shown(kind, text, shown):
    assert words(read(text, kind)) == shown


def test_pipe_in_code_splits_no_cell_if_the_generator_parses_code_first():
    for kind, cells in (("text/x-mkdocs", "Host(`a|b`) | c|d or e"), ("text/markdown", "```Host(`a | b`)```")):
        assert words(read("| x | y |\n|---|---|\n| ```Host(`a|b`)``` | `c\\|d` or e |\n", kind)) == cells


def test_mdx_keeps_the_text_in_and_around_its_components():
    document = read(MDX, "text/mdx")
    text = words(document)
    assert document.title == "Components"
    assert "Press the red button, or <Kept a={1}>; 3 < 4 and quoted words." in text
    assert "With npm\n\nnpm install <package> {name}\n\nimport the package by hand." in text
    assert document.sections[-1].anchor == "mine" and document.sections[-1].headings[-1] == "Own id"
    assert "Last words." in text
    assert not any(part in text for part in ("theme", "style", "children", "comment", "mp4", "TabItem"))


def test_myst_keeps_code_and_role_text_and_gives_labels_an_anchor():
    document = read(
        "# Page\n\n(own label)=\n## Section\n\n{ref}`Titled <x>`, {class}`~pkg.Short`, {py:func}`pkg.f`.\n\n"
        "Run [](a_command) of [](../b/c.md#d), [](e/f.md) not `[](g)`, [](#h).\n\n"
        "% hidden\n\n```{code-block} python\n:linenos:\n\nx = 1\n```\n\n```{toctree}\nsub\n```\n\n"
        "```python\n{kept}\n```\n",
        "text/x-myst",
    )
    assert words(document) == "Titled, Short, pkg.f().\n\nRun a_command of d, f not [](g), h.\n\nx = 1\n\n{kept}"
    assert document.sections[0].anchors == ("page", "own-label", "section")


def test_myst_reads_embedded_restructured_text():
    rst = ".. code-block:: python\n\n   x = 1\n\n   y = 2\n\n.. py:function:: f(a)\n\n   Calls :func:`~g.h`.\n"
    document = read(f"# Page\n\nBefore.\n\n```{{eval-rst}}\n{rst}```\n\nAfter *all*.\n", "text/x-myst")
    assert words(document) == "Before.\n\nx = 1\n\ny = 2\n\nf(a)\n\nCalls h().\n\nAfter all."


WIDE = "| a " * 100 + "|\n" + "| - " * 100 + "|\n" + "x\n" * 400
FEW_CELLS = MOST_FILLED + 20_000  # including the cells in the source


@pytest.mark.parametrize("media_type", ["text/markdown", "text/x-myst", "text/x-mkdocs"])
@pytest.mark.parametrize(
    "text", [WIDE, f"{WIDE}\n" * 20, f"> {WIDE}".replace("\n", "\n> "), f"- {WIDE}".replace("\n", "\n  ")]
)
def test_wide_table_with_short_rows_gets_few_extra_cells(text: str, media_type: str) -> None:
    page = Page("https://docs.ray.io/a", text.encode(), media_type)
    html, _ = render([text], dialect_of(page))
    assert html.count("<th>") % 100 == 0 and html.count("<th>") >= 100
    assert html.count("<td") <= FEW_CELLS


def test_table_with_short_rows_is_as_wide_as_its_header() -> None:
    html, _ = render(["| a | b | c |\n|-|-|-|\n| x |\n| y | z |\n"], dialect_of(Page("https://docs.ray.io/a", b"", "")))
    assert html.count("<td") == 6
