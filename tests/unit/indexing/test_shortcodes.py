"""A shortcode with a plain template shows the template's words; other shortcodes show their attributes."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from pipelines.indexing.folders.includes import Includes

FILES = {
    "layouts/shortcodes/required.html": '<span class="must">{{ i18n "required" }}</span>',
    "layouts/_shortcodes/version.html": "<b>Since {{ .Get 0 }}</b>\n",
    "layouts/shortcodes/who.html": '<svg><title>x</title></svg> by {{ .Get "name" | markdownify }} &amp; friends',
    "layouts/shortcodes/open.html": "<div>Open",
    "layouts/shortcodes/hint.html": '<p>{{ if .Get "x" }}Hint{{ end }}</p>',
    "_includes/beta.html": "<em>Beta: {{ include.of }}</em>",
    "_includes/loop.html": "{% for page in site.pages %}{{ page.title }}{% endfor %}",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def filled(root: Path, text: str) -> str:
    return Includes(LocalFileSystem(), f"{root}/")(f"{root}/content/en/a.md", text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id {{< required >}} String.", "id required String."),
        ("{{% version 2.1 %}} only.", "Since 2.1 only."),
        ('Written {{< who name="Ada L." >}}.', "Written by Ada L. & friends."),
        ('The {% include beta.html of="search" %} is new.', "The Beta: search is new."),
        ('{% include beta.html of="search" %}', "Beta: search"),
    ],
)
def test_plain_template_is_expanded(root, text, shown):
    assert filled(root, text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "{{< open >}}", '{{< hint x="y" >}}', "All {% include loop.html %} pages.", "{{< nowhere >}}",
        "`{{< required >}}`", "```\n{{< required >}}\n```", "{{</* required */>}}", "{{< ../required >}}",
    ],
)  # fmt: skip
def test_template_logic_and_code_stay_verbatim(root, text):
    assert filled(root, text) == text
