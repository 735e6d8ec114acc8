"""The markup of Markdown dialects is read everywhere except in code."""

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.page.plain import plain
from pipelines.page.tree import Note, Paragraph, Table
from pipelines.records import Page
from tests.kit.sectioning import text_of

TEMPLATE, MDX, MYST = "text/markdown", "text/mdx", "text/x-myst"
PYTHON, VUE, DOCUSAURUS, DOCSIFY = "text/x-mkdocs", "text/x-vue-markdown", "text/x-docusaurus", "text/x-docsify"
KRAMDOWN, BLACKFRIDAY = "text/x-kramdown", "text/x-blackfriday"
ELEMENT = "<div>\n  <p>\n\n      *One*\n\n  </p>\n</div>\n*Two*"


def shown(text: str, kind: str) -> str:
    return text_of(*read_page(Page("https://x.org/p", text.encode(), kind)).sections)


CONSTRUCTS = [
    (TEMPLATE, '{{< note title="A title" >}}'),
    (TEMPLATE, '{% include note.html content="A text" %}'),
    (TEMPLATE, "{{#include a.md}}"),
    (TEMPLATE, '{{ "/a" | relative_url }}'),
    (TEMPLATE, "{% highlight ruby %} a {% endhighlight %}"),
    (MDX, '<Card title="A title" a={1}>'),
    (MDX, '{"a text"}'),
    (MDX, "{/* a comment */}"),
    (MYST, "{abbr}`a`"),
    (MYST, "(a-label)="),
    (MYST, "% a comment"),
    (MYST, "[](a.md)"),
    (PYTHON, '=== "A tab"'),
    (PYTHON, "!!! note"),
    (VUE, "{{ expression }}"),
    (TEMPLATE, ":x:"),
    (DOCSIFY, "!> A note"),
]


@pytest.mark.parametrize(("kind", "text"), CONSTRUCTS)
def test_dialect_syntax_in_code_is_shown_verbatim(kind, text):
    assert shown(f"Text.\n\n````\n{text}\n\n{text}\n````\n", kind) == f"Text.\n{text}\n\n{text}"
    assert shown(f"Use ``` {text} ``` here.\n", kind) == f"Use {text} here."
    assert shown(f"- One\n\n  1. Two\n\n     ~~~~\n     {text}\n     ~~~~\n", kind).endswith(f"\n{text}")
    assert shown(f"> Quoted\n>\n> ```\n> {text}\n> ```\n", kind) == f"Quoted\n{text}"


@pytest.mark.parametrize(("kind", "text"), [case for case in CONSTRUCTS if case[0] != MDX])
def test_dialect_syntax_in_indented_code_is_shown_verbatim(kind, text):
    assert shown(f"Text.\n\n    {text}\n    a\n", kind) == f"Text.\n{text}\na"
    assert shown(f"- One\n\n      {text}\n      a\n", kind) == f"- One\n{text}\na"


BOXES = [
    (TEMPLATE, '{{< note title="Title" >}}\nBoxed **words**.\n{{< /note >}}'),
    (TEMPLATE, "{% include note.html title='Title' %}\nBoxed **words**."),
    (MDX, '<Note title="Title" on={() => { go("}") }}>\n  Boxed **words**.\n</Note>'),
    (MYST, "```{note} Title\n:class: a\n\nBoxed **words**.\n```"),
    (MYST, ":::{note} Title\nBoxed **words**.\n:::"),
    (PYTHON, '=== "Title"\n\n    Boxed **words**.\n'),
    (PYTHON, '??? note "Title"\n\n    Boxed **words**.\n'),
    (VUE, "::: tip Title {.a}\nBoxed **words**. {{ a }}\n:::"),
]


def within(text: str, first: str, then: str) -> str:
    return "".join(f"{then if number else first}{line}".rstrip() + "\n" for number, line in enumerate(text.split("\n")))


@pytest.mark.parametrize(("kind", "text"), BOXES)
def test_box_is_read_inside_lists_quotations_and_boxes(kind, text):
    text = text.replace(" {.a}", "")
    listed = within(text, "  ", "  ")
    assert shown(f"- Item\n\n{listed}- Next\n", kind) == "- Item\n  Title\n  Boxed words.\n- Next"
    assert shown(f"{within(text, '> ', '> ')}\nAfter.\n", kind) == "Title\nBoxed words.\nAfter."


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (MYST, ":::{note}\nWords.\n:::"), (MYST, "```{admonition} Note\nWords.\n```"), (PYTHON, "!!! note\n    Words."),
        (VUE, "::: note\nWords.\n:::"), (DOCSIFY, "!> Words."), (DOCSIFY, "?> Words."),
        ("text/x-rst", ".. note:: Words."),
    ],
)  # fmt: skip
def test_box_of_every_dialect_is_a_note(kind, text):
    section = read_page(Page("https://x.org/p", f"Before.\n\n{text}\n".encode(), kind)).sections[0]
    assert isinstance(section.content[1], Note), section.content


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (MDX, "{/* Don't show\n\nthis. */}\n\nIt's shown.", "It's shown."),
        (MDX, "A <a id='one' /> and <Badge\n  text={'new'} /> b.", "A and new b."),
        (MDX, "export const a = `\n// one\n\nfunction {\n`\n\nWords.", "Words."),
        (MDX, "<C>\n    <C title='A'>\n      One\n    </C>\n    <C title='B'>\n      Two\n    </C>\n</C>",
         "A\n\nOne\n\nB\n\nTwo"),
        (MDX, "<T values={[{label: 'A', value: 'a'}, {label: 'B', value: 'b'}]}>\n<I value='a'>\n\nOne.\n\n</I>\n</T>",
         "- B\n\nA\n\nOne."),
        (VUE, "<Link title='The title'>Words</Link> and x<Badge text='New' />.", "The title Words and x New."),
        (MDX, "- <Badge text='New' />\n- <Badge text='Old' />", "- New\n- Old"),
        (MDX, "<summary>Use `a`</summary>\n\nSee <https://x.org/a>.", "Use a\n\nSee https://x.org/a."),
        (MDX, ":::tip{icon='heart'}\nWords.\n:::", "Tip\nWords."),
        (TEMPLATE, ":::note[Own]{icon='heart'}\nWords.\n:::", "Own\nWords."),
        (TEMPLATE, "[a]({{ site.url }}/b), [c]({% link d.md %} 'e') and [f]({{ page.url | g: '/' }}).", "a, c and f."),
        (TEMPLATE, "A [b].\n\n[b]: {{ site.url }}{% link c.md %}", "A b."),
        (TEMPLATE, 'See <a href="{{ "/b" | relative_url }}">b</a>.', "See b."),
        (TEMPLATE, "Term\n: {{< new-in 1.0 />}}\n: Words.", "Term:\nWords."),
        (TEMPLATE, "> [!tip]- Use **this** `a`\n> Words.", "Use this a\nWords."),
        (TEMPLATE, "> [!NOTE]\n> Words.\n>\n> [!Tip]\n> More.", "Note\nWords.\n\nTip\n\nMore."),
        (TEMPLATE, "Blue\n{: .label }\nGreen\n{: .label }", "Blue\n\nGreen"),
        (PYTHON, "!!! note\n\n    One.\n\n\n    Two.\n\nAfter.", "Note\nOne.\n\nTwo.\nAfter."),
        (PYTHON, '=== "One"\n\n    === "Two"\n\n        ``` yaml\n        a: 1\n        ```\n', "One\nTwo\na: 1"),
        (MYST, "````{tab-set}\n```{tab-item} One\n- a {ref}`B <c>`\n```\n````", "One\n- a B"),
        (MYST, "```{versionadded} 3.2\nWords.\n```", "Added in version 3.2\n\nWords."),
        (MYST, "```{seealso}\nWords.\n```", "See also\nWords."),
        (MYST, "```{py:function} f(x)\nWords.\n```", "f(x)\nWords."),
        (MYST, "```{prf:theorem} Two\nWords.\n```", "Two\n\nWords."),
        (MYST, "```{math}\n:label: x\na_1 * b_1 * c\n```", "$$a_1 * b_1 * c$$"),
        (MYST, "```{figure} a.png\n:alt: An image\n\nCaption.\n```", "An image\n\nCaption."),
        (MYST, "```{list-table}\nWords.\n```", "Words."),
        (MYST, "{func}`~a.b`, {file}`c/{d}` and {pep}`8`", "b(), c/d and PEP 8"),
        (MYST, "{octicon}`plug;1em` Words\n+++\nMore.", "Words\n\nMore."),
        (MYST, "```{csv-table} Ports\n:header: Name, Port\n\n`web`, 80\n\"a, b\", 81\n```",
         "Ports\nweb | 80\na, b | 81"),
        (MYST, "```{csv-table}\n:delim: ;\nweb; **80**\n```", "web | 80"),
        (DOCSIFY, "!> **Never** run it\ntwice.\n\nSo.", "Never run it twice.\n\nSo."),
        (DOCSIFY, "Run it. ?> Or not.\n\n- ?> Here.", "Run it. ?> Or not.\n\n- Here."),
        (VUE, "[a]({{ b }}) and [c]({{ d | e }}/f).", "a and c."),
        (KRAMDOWN, ELEMENT, "*One*\n\nTwo"),
        (PYTHON, ELEMENT, "*One*\n\nTwo"),
        (TEMPLATE, ELEMENT, "  *One*\n*Two*"),
        (KRAMDOWN, f"- {ELEMENT.replace(chr(10), chr(10) + '  ')}\n\nThree", "- *One*\n  Two\nThree"),
        (KRAMDOWN, "<div>\n\n<p markdown='1'>\n*One*\n</p>\n\n</div>", "One"),
        (KRAMDOWN, "<div>\n\n```\n*One*\n```\n\n</div>", "*One*"),
        (KRAMDOWN, "<div>\n\n*One*", "One"),
        (PYTHON, "::: a.b.C\n    options:\n        filters: x\n\nAfter.", "After."),
        (PYTHON, "::: a.b.C\n::: d\nAfter.", "After."),
    ],
)  # fmt: skip
def test_dialect_is_read_as_generators_publish_it(kind, text, words):
    assert shown(text, kind) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import C from '@c';\n\n<C title='A'>\n\nOne.\n\n</C>", "A\n\nOne."),
        ("import x, { C } from \"@c\"\n\nA <C>one</C>.", "A one."),
        ("<C values={[\n  {label: 'A'},\n]}>\n\nOne.\n\n</C>", "- A\n\nOne."),
        ("Text.\n\n```jsx\nimport C from '@c';\n<C a={1}>\n```\n\nUse {a}.",
         "Text.\nimport C from '@c';\n<C a={1}>\nUse {a}."),
        ("import C from '@c' is a statement. Use {a}.", "import C from '@c' is a statement. Use {a}."),
        ("import os from 'os'\n\nUse `<C>` and {a}.", "import os from 'os'\n\nUse <C> and {a}."),
    ],
)  # fmt: skip
def test_markdown_with_components_of_jsx_is_read_as_mdx(text, words):
    assert shown(text, TEMPLATE) == words


def test_list_table_of_myst_is_a_table():
    text = "Before.\n\n:::{list-table} Sizes\n:header-rows: 1\n\n* - Name\n  - Size\n* - `a`\n  - 1\n:::\n"
    _, title, table = read_page(Page("https://x.org/p", text.encode(), MYST)).sections[0].content
    assert isinstance(title, Paragraph) and plain(title.spans) == "Sizes"
    assert isinstance(table, Table), table
    assert [[plain(cell) for cell in row] for row in (table.head, *table.rows)] == [["Name", "Size"], ["a", "1"]]


@pytest.mark.parametrize("kind", [TEMPLATE, PYTHON, VUE, DOCUSAURUS, DOCSIFY])
def test_short_name_of_an_emoji_is_read_as_the_emoji(kind):
    text = "| A | B |\n|---|---|\n| Linux :tada: | :white_check_mark: |\n| Windows | :x: |\n"
    assert shown(text, kind) == "Linux 🎉 | ✅\nWindows | ❌"
    assert shown("At 10:100:5 run a:x:b, :no_such_name: or `:x:`.", kind) == (
        "At 10:100:5 run a:x:b, :no_such_name: or :x:."
    )


@pytest.mark.parametrize(
    ("kind", "anchor"),
    [(TEMPLATE, "rocket-go-on"), (DOCSIFY, "rocket-go-on"), (VUE, "go-on"), (PYTHON, "go-on"), (DOCUSAURUS, "-go-on")],
)
def test_emoji_counts_in_an_id_as_on_the_generated_site(kind, anchor):
    (section,) = read_page(Page("https://x.org/p", b"Text.\n\n## :rocket: Go on\n\nWords.\n", kind)).sections[1:]
    assert (section.anchor, section.headings) == (anchor, ("🚀 Go on",))


def test_ids_of_blackfriday_have_one_hyphen_between_words():
    page = Page("https://x.org/p", b"# --vfs-cache-mode (off)\n\na\n\n## v1.2 - 3\n\nb", BLACKFRIDAY)
    assert [section.anchor for section in read_page(page).sections] == ["vfs-cache-mode-off", "v1-2-3"]


def test_ids_of_docsify_are_made_of_the_html_of_a_heading():
    page = Page("https://x.org/p", b"# `a(b)` => 'C' & \"d\"\n\na", DOCSIFY)
    assert read_page(page).sections[0].anchor == "ab-gt-39c39-amp-quotdquot"


def test_icons_of_material_are_read_as_signs_or_not_at_all():
    text = "| A | B |\n|---|---|\n| Linux | :material-check:{ .green } |\n| Mac :simple-apple: | :octicons-x-16: |\n"
    assert shown(text, PYTHON) == "Linux | ✓\nMac | ✗"


def test_attributes_of_a_docsify_heading_set_its_id():
    text = b"# Guide\n\n## Configure it :id=conf\n\nOne.\n\n## 2 Run, then! <!-- {docsify-ignore} -->\n\nTwo.\n"
    sections = read_page(Page("https://x.org/p", text, DOCSIFY)).sections
    assert [(section.anchor, section.headings[-1]) for section in sections] == [
        ("conf", "Configure it"), ("_2-run-then", "2 Run, then!"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sign", ["{/* ", "<a {", "{{< ", "{% ", '<a b="{{ ', "{a}``b` ", "[a]({{ ", "{% comment %} ", '=== "', "{: "]
)
def test_unclosed_syntax_is_text_and_takes_no_time(sign):
    for kind in (TEMPLATE, MDX, MYST, PYTHON, VUE):
        assert "Last words." in shown(f"{sign}\n" * 1_000 + "\n\nLast words.\n", kind)
