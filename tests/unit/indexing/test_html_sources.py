"""A source folder's pages in HTML are read without their front matter, and its templates are no pages."""

from pathlib import Path

import pytest

from pipelines.indexing.folders.folder import FolderSettings
from pipelines.indexing.reading.read import read_page
from pipelines.records import Page
from tests.kit.sectioning import text_of

CONFIGS = {
    "hugo.toml": "baseURL = 'https://x.org'\n",
    "conf.py": "project = 'x'\n",
    "mkdocs.yml": "site_name: x\n",
    "eleventy.config.js": "export default {}\n",
}
WHOLE = "<!doctype html><html><head><title>T</title></head><body><p>Some {{ text }}.</p></body></html>"


def folder(root: Path, config: str) -> FolderSettings:
    (root / config).write_text(CONFIGS[config])
    for name in ("docs", "content"):
        (root / name).mkdir()
        (root / name / "_index.md").write_text("# T\n")
    return FolderSettings(path=str(root), base_url="https://x.org/").recognised()


@pytest.mark.parametrize(
    ("config", "text", "is_page"),
    [
        ("conf.py", WHOLE, True),
        ("conf.py", "<head>{% block x %}</head>" + WHOLE, False),
        ("conf.py", '{% extends "base.html" %}\n{% block a %}<p>A</p>{% endblock %}', False),
        ("mkdocs.yml", '<!-- own -->{% extends "base.html" %}', False),
        ("mkdocs.yml", "<p>A part of a page.</p>", False),
        ("mkdocs.yml", "<script>f({{a: 1}})</script>" + WHOLE, True),
        ("eleventy.config.js", "<p>A page.</p>", True),
        ("eleventy.config.js", "---\ntitle: T\n---\n<p>{{ content }}</p>", True),
        ("eleventy.config.js", "---\npermalink: false\n---\n<p>A</p>", False),
        ("hugo.toml", "---\ndraft: true\n---\n<p>A</p>", False),
        ("hugo.toml", "\n---\ndraft: true\n---\n<p>A</p>", False),
    ],
)
def test_templates_parts_and_drafts_are_no_pages(config, text, is_page, tmp_path):
    assert folder(tmp_path, config).is_page(f"{tmp_path}/content/a.html", text.encode()) is is_page


def test_folder_of_an_unknown_generator_keeps_its_html(tmp_path):
    settings = FolderSettings(path=str(tmp_path), base_url="https://x.org/")
    assert settings.is_page(f"{tmp_path}/a.html", b'{% extends "base.html" %}')


def test_html_with_front_matter_is_a_page_like_others(tmp_path):
    settings = folder(tmp_path, "hugo.toml")
    path = f"{tmp_path}/content/_index.html"
    body = (
        b'---\ntitle: Start\n---\n{{< cover title="All of it" height="min" >}}\n<p>Words.</p>\n{{% /cover %}}\n'
        b"{{< feature >}}"
    )
    url = settings.url_of(path, body)
    document = read_page(Page(url, settings.page(path, url, body, None).body or b"", settings.media_type_of(path)))
    assert url == "https://x.org/" and document.title == "Start"
    assert " ".join(text_of(*document.sections).split()) == "All of it Words."
