"""Pages of a source folder are cited by the URLs at which the site's generator publishes them."""

from pathlib import Path

import pytest

from pipelines.indexing.folders.folder import FolderSettings
from pipelines.indexing.reading.front_matter import front_matter

BASE = "https://d.test/"


def write(root: Path, *paths: str, **texts: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(texts.get(path, "# Words\n"))


def urls(folder: Path, base: str = BASE, style: str = "auto") -> dict[str, str]:
    settings = FolderSettings(path=str(folder), base_url=base, url_style=style).recognised()
    files = [Path(path) for path in settings.files().paths]
    return {str(path.relative_to(folder)): settings.url_of(str(path), path.read_bytes()) for path in files}


def recognised(root: Path) -> FolderSettings:
    return FolderSettings(path=str(root), base_url=BASE).recognised()


FILES = ["README.md", "a.html", "guide/b.mdx", "guide/index.md", "n.ipynb", "r.rst", "s/_index.md"]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("auto", FILES),
        ("keep", FILES),
        ("html", ["", "a.html", "guide/b.html", "guide/", "n.html", "r.html", "s/"]),
        ("directory", ["", "a.html", "guide/b/", "guide/", "n/", "r/", "s/"]),
        ("bare", ["", "a.html", "guide/b", "guide/", "n", "r", "s/"]),
    ],
)
def test_url_style_is_a_setting(style, expected, tmp_path):
    write(tmp_path, *FILES)
    assert list(urls(tmp_path, style=style).values()) == [BASE + path for path in expected]


LINKS = {
    "directory": "See [b](/guide/b/#s), [c]({base}guide/c/) and <a href='/d/'>d</a>.",
    "html": "See [b](/guide/b.html), [c]({base}guide/c.html 'C') and <a href=\"/d.html\">d</a>.",
    "bare": "See [b](/guide/b), [c]({base}guide/c?x=1) and [d](</d>).",
}


@pytest.mark.parametrize("style", LINKS)
def test_links_between_pages_tell_the_style_of_an_unknown_site(style, tmp_path):
    write(tmp_path, "index.md", "guide/index.md", "guide/b.md", "guide/c.mdx", "d.md", "e.rst")
    (tmp_path / "guide" / "b.md").write_text(LINKS[style].format(base=BASE))
    by_links = urls(tmp_path)
    assert by_links == urls(tmp_path, style=style) != urls(tmp_path, style="keep")
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)  # a configuration overrides links
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(LINKS[style].format(base=BASE))
    assert urls(tmp_path) == {"docs/index.md": BASE}


def test_link_with_a_placeholder_in_the_base_url_tells_a_style(tmp_path):
    write(tmp_path, "index.md", "a.md", "b.md", "c.md")
    links = "[a](/docs/{{version}}/a), [b](https://d.test/docs/{v}/b#s), [c](/docs/12.x/c)"
    (tmp_path / "index.md").write_text(links)
    base = f"{BASE}docs/12.x/"
    assert urls(tmp_path, base)["a.md"] == f"{base}a"
    assert urls(tmp_path, f"{BASE}manual/")["a.md"] == f"{BASE}manual/a.md"


@pytest.mark.parametrize(
    "text",
    [
        "See [b](/guide/b/) and [c](/guide/c/).",  # two pages
        "See [b](/guide/b/), [c](/guide/c/) and [d](/d/), [b](/guide/b), [c](/guide/c) and [d](/d).",
        "See [b](/guide/), [c](/other/c/), [d](https://elsewhere.test/d/), [c](c.mdx) and [b](./b.md).",
    ],
)
def test_few_mixed_or_other_links_tell_no_style(text, tmp_path):
    write(tmp_path, "guide/index.md", "guide/b.md", "guide/c.mdx", "d.md")
    (tmp_path / "guide" / "b.md").write_text(text)
    assert urls(tmp_path) == urls(tmp_path, style="keep")


def test_file_named_index_in_capitals_is_a_page_of_its_own(tmp_path):
    write(tmp_path, "a/Index.ipynb", "b/index.md")
    assert urls(tmp_path, style="html") == {"a/Index.ipynb": BASE + "a/Index.html", "b/index.md": BASE + "b/"}


MKDOCS = "site_name: x\nplugins: [search]\nmarkdown_extensions:\n  - emoji: !!python/name:material.emoji\n"


def test_mkdocs_publishes_directories_of_its_docs_dir(tmp_path):
    write(tmp_path, "docs/index.md", "docs/guide/README.md", "docs/guide/first steps.md", "docs/a.pdf", "CHANGES.md")
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)
    expected = {"docs/index.md": "", "docs/guide/README.md": "guide/", "docs/a.pdf": "a.pdf"}
    expected["docs/guide/first steps.md"] = "guide/first%20steps/"
    assert urls(tmp_path) == {path: BASE + url for path, url in expected.items()}
    assert urls(tmp_path / "docs") == {path.removeprefix("docs/"): BASE + url for path, url in expected.items()}
    part = urls(tmp_path / "docs" / "guide", BASE + "guide/")
    assert part == {"README.md": BASE + "guide/", "first steps.md": BASE + "guide/first%20steps/"}


HEXO = "permalink: :year/:month/:day/:title/\nsource_dir: source\npublic_dir: public\n"
DOCFX = """{"build": {"content": [{"files": ["api/**.yml"]}, {"files": ["articles/**/*.md"], "dest": "manual"},
 {"src": "more", "files": "*.md"}]}}"""
FUMADOCS = "export const docs = defineDocs({ dir: 'content/docs' });"
WRITERSIDE = '<ihp version="2.0">\n  <topics dir="t" web-path="x"/>\n</ihp>'
PERMALINKS = '[permalinks]\n  blog = "/:section/:year/:month/:slug/"\n  news = "/:sections/:title/"\n'
PERMALINKS += '  talks = "/t/:slugorcontentbasename/"\n'
JEKYLL = "permalink: pretty\ncollections:\n  posts:\n    permalink: /news/:year/:title/\n"


@pytest.mark.parametrize(
    ("config", "text", "pages"),
    [
        ("hugo.toml", "", {"content/en/_index.md": "", "content/en/docs/a.md": "docs/a/", "content/de/b.md": None}),
        ("config/_default/hugo.yaml", "", {"content/_index.md": "", "content/docs/B/index.md": "docs/b/"}),
        ("site/hugo.toml", "", {"site/content/_index.md": "", "site/content/readme.md": "readme/", "a.md": None}),
        ("astro.config.mjs", "", {"src/content/docs/index.mdx": "", "src/content/docs/404.md": None, "a.md": None}),
        (
            ".gitbook.yaml",
            "root: ./manual/",
            {"manual/README.md": "", "manual/SUMMARY.md": None, "manual/a/b.md": "a/b"},
        ),
        ("_toc.yml", "format: jb-book", {"index.md": "", "a/b.ipynb": "a/b.html", "_build/c.md": None}),
        ("_config.yml", "", {"index.md": "", "a/b.md": "a/b.html", "_posts/2020-01-02-c.md": "2020/01/02/c.html"}),
        (
            "_config.yml",
            JEKYLL,
            {"a/b.md": "a/b/", "_guides/c.md": "guides/c/", "_posts/2020-01-02-d.md": "news/2020/d/"},
        ),
        ("_config.yml", "a:\n  b:\n" + 40 * "      c: d\n", {"a/b.md": "a/b.html"}),
        (
            "next.config.mjs",
            "import nextra",
            {"app/layout.jsx": None, "app/(docs)/a/page.mdx": "a/", "app/_b/c.md": None},
        ),
        (
            "next.config.mjs",
            "import nextra",
            {"content/index.mdx": "", "content/a/b.mdx": "a/b", "app/layout.jsx": None},
        ),
        (
            "docs.json",
            '"$schema": "https://mintlify.com/docs.json"',
            {"index.mdx": "", "a/b.mdx": "a/b", "snippets/c.mdx": None},
        ),
        ("docs.json", '"pages": []', {"a/b.mdx": "a/b.mdx"}),  # of another program
        ("astro.config.mjs", "", {"docs/a.md": "docs/a.md"}),  # not a docs site: cited by file
        ("book.toml", "[book]", {"src/SUMMARY.md": None, "src/README.md": "", "src/a/01-b.md": "a/01-b.html"}),
        ("zensical.toml", "[project]\ndocs_dir = 'd'", {"d/index.md": "", "d/a.md": "a/", "docs/b.md": None}),
        ("conf.py", "DEBUG = True", {"a.md": "a.md"}),  # same file name, but not a configuration
        (
            ".vitepress/config.js",
            "srcDir: './d',",
            {"d/index.md": "", "d/a.md": "a.html", "b.md": None, "d/public/c.txt": None},
        ),
        (
            "antora.yml",
            "name: x",
            {
                "modules/ROOT/pages/index.adoc": "",
                "modules/a/pages/b.adoc": "a/b.html",
                "modules/a/partials/c.adoc": None,
            },
        ),
        (".vuepress/config.ts", "", {"README.md": "", "de/a/README.md": "de/a/", "de/b.md": "de/b.html"}),
        ("config.json", '{"baseurl": "x"}', {"content/_index.md": "", "content/A.md": "a/"}),
        ("config.json", '{"port": 1}', {"content/A.md": "content/A.md"}),  # of another program
        ("hugo.toml", "DisablePathToLower = true", {"content/_index.md": "", "content/Status/x.md": "Status/x/"}),
        ("hugo.json", '{\n  "uglyURLs": true\n}', {"content/_index.md": "", "content/A/b.md": "a/b.html"}),
        (
            "astro.config.mjs",
            "trailingSlash: 'never'",
            {"src/content/docs/index.md": "", "src/content/docs/Debug/a b (c).md": "debug/a-b-c"},
        ),
        ("_config.ts", "lume({ location })", {"index.md": "", "a/B.mdx": "a/B/", "_includes/c.md": None}),
        ("_config.ts", "export default {}", {"a.md": "a.md"}),  # another program's file
        ("_config.yml", HEXO, {"source/docs/a.md": "docs/a.html", "source/_drafts/b.md": None, "README.md": None}),
        ("_config.yml", "new_post_name: x\npretty_urls:\n  trailing_html: false\n", {"source/docs/a.md": "docs/a"}),
        ("_quarto.yml", "project:\n  type: website\n", {"index.qmd": "", "a/b.qmd": "a/b.html", "a/_c.qmd": None}),
        (
            "_pkgdown.yml",
            "url: x\n",
            {
                "README.md": "",
                "README.Rmd": None,
                "NEWS.md": "news/",
                "vignettes/a.Rmd": "articles/a.html",
                "R/b.md": None,
            },
        ),
        ("docs/make.jl", "makedocs(sitename = x)", {"docs/src/index.md": "", "docs/src/a/b.md": "a/b/", "c.md": None}),
        ("index.html", "window.$docsify = {}", {"README.md": "README.md", "a/b.md": "a/b.md", "_sidebar.md": None}),
        ("index.html", "$docsify = {routerMode: 'history'}", {"README.md": "", "a/b.md": "a/b", "a/_navbar.md": None}),
        ("writerside.cfg", WRITERSIDE, {"t/ai/Kotlin_skills.md": "kotlin-skills.html", "README.md": None}),
        (
            "docfx.json",
            DOCFX,
            {
                "articles/index.md": "manual/articles/",
                "articles/a/b.md": "manual/articles/a/b.html",
                "articles/includes/c.md": None,
                "more/d.md": "d.html",
                "toc.md": None,
            },
        ),
        (
            "source.config.ts",
            FUMADOCS,
            {"content/docs/index.mdx": "docs/", "content/docs/(guides)/setup/a.mdx": "docs/setup/a", "README.md": None},
        ),
        ("config.toml", "base_url = 'x'", {"content/_index.md": "", "content/News/2020-01-02-B c.md": "news/b-c/"}),
        ("config.toml", "baseURL = 'x'", {"content/_index.md": "", "content/News/2020-b.md": "news/2020-b/"}),
        (
            ".eleventy.js",
            "dir: { input: 'src' }",
            {"src/index.md": "", "src/2020-01-02-a.md": "a/", "src/b/b.md": "b/"},
        ),
        # A generator's own output is no source.
        (
            ".eleventy.js",
            "dir: { output: 'dist' }",
            {"index.md": "", "dist/a/index.html": None, "b/dist/c.md": "b/dist/c/"},
        ),
        (
            ".eleventy.js",
            "dir: { input: 'src', output: 'docs' }",
            {"src/docs/a.md": "docs/a/", "docs/a/index.html": None},
        ),
        ("_quarto.yml", "project:\n  output-dir: docs\n", {"index.qmd": "", "docs/index.html": None}),
        (
            "_config.yml",
            "destination: ./public\n",
            {"index.md": "", "public/index.html": None, "a/public.md": "a/public.html"},
        ),
        ("_config.ts", "lume({ dest: 'www/' })", {"index.md": "", "www/index.html": None}),
        (".vitepress/config.ts", "base: '/'", {"index.md": "", "guide/a.md": "guide/a.html"}),
        (".vitepress/config.js", "", {"index.md": "", "a/Index.md": "a/Index.html", "a/README.md": "a/README.html"}),
        ("astro.config.mjs", "", {"src/content/docs/Index.md": "", "src/content/docs/README.md": "readme/"}),
        (
            "mkdocs.yml",
            "site_name: x",
            {"docs/README.md": "", "docs/a/Index.md": "a/Index/", "docs/b/readme.md": "b/readme/"},
        ),
        ("conf.py", "project = 'x'", {"index.rst": "", "a/Index.rst": "a/Index.html"}),
        (".vitepress/config.mts", "cleanUrls: true,", {"src/index.md": "", "src/guide/a.md": "guide/a", "b.md": None}),
    ],
)
def test_generator_publishes_the_folder_named_in_its_table(config, text, pages, tmp_path):
    write(tmp_path, config, *pages)
    (tmp_path / config).write_text(text)
    assert urls(tmp_path) == {path: BASE + url for path, url in pages.items() if url is not None}


@pytest.mark.parametrize(
    ("config", "text", "path", "front", "url"),
    [
        ("hugo.toml", "", "content/a/b.md", '+++\nurl = "/C/d"\n+++\n', "c/d/"),
        ("hugo.toml", "", "content/a/b.en.md", "---\nslug: c\n---\n", "a/c/"),
        ("hugo.toml", "", "content/a/b.md", "---\nslug: c\naliases: [\n\t/x,\n]\n---\n", "a/c/"),
        ("hugo.toml", "", "content/a/b/index.md", "---\nslug: c\n---\n", "a/c/"),
        (
            "hugo.toml",
            PERMALINKS,
            "content/blog/x/b.md",
            "---\ndate: 2020-01-02\ntitle: To C!\n---\n",
            "blog/2020/01/to-c/",
        ),
        ("hugo.toml", PERMALINKS, "content/news/a/b.md", "---\ntitle: A & B 1.2\n---\n", "news/a/a-b-1.2/"),
        ("hugo.toml", PERMALINKS, "content/talks/b.md", "---\nid: c\n---\n", "t/b/"),
        ("hugo.toml", "", "content/a/b.md", "---\nid: c\n---\n", "a/b/"),
        ("hugo.toml", PERMALINKS, "content/blog/_index.md", "---\ntitle: C\n---\n", "blog/"),
        ("_config.yml", "permalink: /n/:title/\n", "_posts/2020-01-02-b.md", "---\ntitle: C\n---\n", "n/b/"),
        ("_config.yml", "", "a/b.md", "---\npermalink: /c/\n---\n", "c/"),
        ("_config.yml", "", "_posts/2020-01-02-b.md", "---\ndate: 2020-01-03 10:00\n---\n", "2020/01/03/b.html"),
        ("_config.ts", "lume()", "examples/a.md", "---\nurl: /examples/a_tutorial/\n---\n", "examples/a_tutorial/"),
        ("_config.ts", "lume()", "examples/b/a.md", "---\nurl: ../c/\n---\n", "examples/c/"),
        ("_config.yml", HEXO, "source/_posts/news.md", "---\ndate: 2024-05-01\n---\n", "2024/05/01/news/"),
        ("_config.yml", HEXO, "source/a.md", "---\npermalink: b/c/\n---\n", "b/c/"),
        ("config.toml", "base_url = 'x'", "content/a/b.md", "---\nslug: c\n---\n", "a/c/"),
        ("astro.config.ts", "", "src/content/docs/a.md", "---\nslug: c/d\n---\n", "c/d/"),
    ],
)
def test_front_matter_can_set_the_url_of_a_page(config, text, path, front, url, tmp_path):
    write(tmp_path, config, "src/content/docs/index.md", path, **{config: text, path: front})
    assert urls(tmp_path)[path] == BASE + url


@pytest.mark.parametrize(
    ("loader", "url"), [("", "docs/a"), ("loader({ baseUrl: '/' })", "a"), ("baseUrl: '/x/docs'", "x/docs/a")]
)
def test_fumadocs_publishes_a_folder_under_the_path_of_its_loader(loader, url, tmp_path):
    write(tmp_path, "content/docs/(g)/a.mdx", "source.config.ts", "src/lib/source.ts",
          **{"src/lib/source.ts": loader, "source.config.ts": FUMADOCS})  # fmt: skip
    assert urls(tmp_path) == {"content/docs/(g)/a.mdx": BASE + url}
    assert urls(tmp_path / "content" / "docs", BASE + "d/") == {"(g)/a.mdx": BASE + "d/a"}


def test_docfx_on_microsoft_learn_publishes_without_suffixes(tmp_path):
    write(tmp_path, "docs/index.md", "docs/a.md", ".openpublishing.publish.config.json")
    (tmp_path / "docs" / "docfx.json").write_text("{}")
    assert urls(tmp_path / "docs") == {"index.md": BASE, "a.md": BASE + "a"}


def test_part_of_a_hugo_site_has_its_published_urls(tmp_path):
    write(tmp_path, "hugo.toml", "content/_index.md", "content/guide/a.md")
    assert urls(tmp_path / "content" / "guide", BASE + "guide/") == {"a.md": BASE + "guide/a/"}


def test_mdbook_publishes_the_pages_in_its_summary(tmp_path):
    write(tmp_path, "book.toml", "src/README.md", "src/a b.md", "src/parts/included.md", "src/c.png")
    (tmp_path / "src" / "SUMMARY.md").write_text("[Start](README.md)\n- [A](./a%20b.md#part)\n- [Planned]()\n")
    assert urls(tmp_path) == {"src/README.md": BASE, "src/a b.md": BASE + "a%20b.html"}


def test_mkdocs_can_publish_files_from_another_folder(tmp_path):
    write(tmp_path, "manual/a.md", "docs/b.md")
    (tmp_path / "mkdocs.yml").write_text(MKDOCS + "docs_dir: manual\nuse_directory_urls: false\n")
    assert urls(tmp_path) == {"manual/a.md": BASE + "a.html"}
    assert urls(tmp_path / "docs") == {"b.md": BASE + "b.md"}
    (tmp_path / "mkdocs.yml").write_text(MKDOCS + "docs_dir: !ENV [DOCS, docs]\n")
    assert urls(tmp_path) == {"docs/b.md": BASE + "b/"}
    (tmp_path / "mkdocs.yml").write_text(
        MKDOCS + "docs_dir: .built/pages\n"
    )  # would be created by a step that has not run
    assert urls(tmp_path) == {"docs/b.md": BASE + "docs/b.md", "manual/a.md": BASE + "manual/a.md"}


SPHINX = "import os\nproject = 'x'\nexclude_patterns = ['drafts', '**/old-*.rst']\nextensions = [name for name in ()]\n"


def test_sphinx_publishes_html_files_except_excluded_ones(tmp_path):
    write(tmp_path, "index.rst", "a/index.md", "a/b.ipynb", "a/README.md", "drafts/c.rst", "a/old-d.rst", 
          "_build/e.html", "requirements.txt")  # fmt: skip
    (tmp_path / "conf.py").write_text(SPHINX)
    assert urls(tmp_path) == {
        "index.rst": BASE, "a/index.md": BASE + "a/", "a/b.ipynb": BASE + "a/b.html",
        "a/README.md": BASE + "a/README.html",
    }  # fmt: skip
    settings = recognised(tmp_path)
    types = [settings.media_type_of(str(tmp_path / name)) for name in ("x.md", "x.ipynb", "x.rst")]
    assert types == ["text/x-myst", "application/x-sphinx-ipynb", "text/x-rst"]
    (tmp_path / "conf.py").write_text(SPHINX + "extensions = ['nbsphinx']\n")
    assert recognised(tmp_path).media_type_of(str(tmp_path / "x.ipynb")) == "application/x-nbsphinx-ipynb"


@pytest.mark.parametrize(
    ("config", "text", "kind"),
    [
        ("mkdocs.yml", "site_name: x\nplugins:\n  - search\n  - macros\n", "text/x-mkdocs-macros"),
        ("mkdocs.yml", "plugins:\n  - macros:\n      include_dir: a\n", "text/x-mkdocs-macros"),
        ("mkdocs.yml", "plugins: [search, macros]\n", "text/x-mkdocs-macros"),
        ("mkdocs.yml", "plugins:\n  macros: {}\n", "text/x-mkdocs-macros"),
        ("mkdocs.yml", "nav:\n  - macros.md\n  - macros: b.md\nplugins: [search]\n", "text/x-mkdocs"),
        ("_config.yml", "title: x\n", "text/x-kramdown"),
        ("_config.yml", "title: x\nmarkdown: CommonMarkGhPages\n", "text/markdown"),
        ("hugo.toml", "[markup.goldmark.parser]\nautoHeadingIDType = 'blackfriday'\n", "text/x-blackfriday"),
        ("hugo.toml", "title = 'x'\n", "text/markdown"),
    ],
)
def test_configuration_chooses_the_dialect(config, text, kind, tmp_path):
    write(tmp_path, "docs/index.md", "content/_index.md")
    (tmp_path / config).write_text(text)
    assert recognised(tmp_path).media_type_of("a.md") == kind


def test_wildcards_of_sphinx_stay_within_one_folder(tmp_path):
    write(tmp_path, "a.rst", "b/a.rst", "b/c1.rst", "b/c2.rst", "b/d/e.rst", "f/g/x/h.rst")
    (tmp_path / "conf.py").write_text(
        "project = 'x'\nexclude_patterns = ['*.rst', 'b/c[!2].rst', 'b/*/e?rst', 'f/**/h*', '[z-a]', '[']\n"
    )
    assert [*urls(tmp_path)] == ["b/a.rst", "b/c2.rst"]


def test_names_that_mkdocs_excludes_match_in_every_folder(tmp_path):
    write(tmp_path, "docs/a.md", "docs/b/drafts/c.md", "docs/b/x/d.md", "docs/x/d.md", "docs/n-1/p.md", "docs/n-1.md")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nexclude_docs: |\n  drafts/\n  /x\n  n*.md\n")
    assert [*urls(tmp_path)] == ["docs/a.md", "docs/b/x/d.md", "docs/n-1/p.md"]


def test_sphinx_can_read_text_files_and_build_directories(tmp_path):
    write(tmp_path, "docs/intro/a.txt")
    (tmp_path / "docs" / "conf.py").write_text(SPHINX + "source_suffix = {'.txt': 'restructuredtext'}\n")
    (tmp_path / ".readthedocs.yaml").write_text("sphinx:\n  builder: dirhtml\n")
    assert urls(tmp_path / "docs") == {"intro/a.txt": BASE + "intro/a/"}


def test_generator_output_is_treated_as_a_mirror(tmp_path):
    write(tmp_path, "docs/_build/html/a.html", "docs/_build/html/b.md")
    (tmp_path / "docs" / "conf.py").write_text(SPHINX)
    assert urls(tmp_path / "docs" / "_build" / "html") == {"a.html": BASE + "a.html", "b.md": BASE + "b.md"}


@pytest.mark.parametrize(
    ("languages", "hides", "expected"),
    [
        ("['en', 'fr', 'zh-CN']", "default-locale", ["a", "a", "fr/a", "", "zh-CN/", "next.js", "v.de"]),
        ("['en', 'fr', 'zh-CN']", "never", ["en/a", "en/a", "fr/a", "en/", "zh-CN/", "en/next.js", "en/v.de"]),
        ("names", "never", ["en/a", "en/a", "fr/a", "en/", "zh-CN/", "en/next.js", "de/v"]),
    ],
)
def test_fumadocs_publishes_translations_by_language(languages, hides, expected, tmp_path):
    pages = ["a", "a.en", "a.fr", "index", "index.zh-CN", "next.js", "v.de"]
    names = [f"content/docs/{page}.mdx" for page in pages]
    i18n = f"defineI18n({{ defaultLanguage: 'en', languages: {languages}, hideLocale: '{hides}' }})"
    configs = {"source.config.ts": FUMADOCS, "lib/i18n.ts": i18n}
    write(tmp_path, *names, *configs, **configs)
    settings = recognised(tmp_path)
    found = [settings.url_of(str(tmp_path / name)).removeprefix(BASE).replace("docs", "", 1) for name in names]
    assert [url.replace("//", "/").lstrip("/") for url in found] == expected


@pytest.mark.parametrize("name", ["mkdocs.yml", "zensical.toml", "conf.py", "book.toml", "docusaurus.config.js"])
def test_broken_configuration_gets_the_defaults(name, tmp_path):
    write(tmp_path, "docs/a.md", "src/a.md", "a.md")
    (tmp_path / name).write_text("project = '\n[: {{{ !!\x00 docs: {")
    assert urls(tmp_path)


DOCUSAURUS = """
const config = {
  // trailingSlash: true,
  presets: [['classic', {
    docs: {
      sidebarPath: './sidebars.js',
      remarkPlugins: [math],
      routeBasePath: '%s',
      rehypePlugins: [[katex, { strict: false }]],
    },
    blog: { showReadingTime: true },
  }]],
};
"""


@pytest.fixture
def website(tmp_path: Path) -> Path:
    slug, own = "---\nslug: /start here\n---\n", "---\r\nid: other\r\n---\r\n"
    write(tmp_path, "docs/01-intro.md", "docs/02-Guides/index.mdx", "docs/02-Guides/03. deep.md", "docs/api/api.md",
          "docs/2024-01-release.md", "docs/_partial.md", "docs/slug.md", "docs/api/own.md", "docs/docs.md", "README.md",
          "blog/2021-08-26-welcome/index.md", "blog/2021-09-01-news.md", "src/pages/about.md",
          **{"docs/slug.md": slug, "docs/api/own.md": own})  # fmt: skip
    return tmp_path


def test_docusaurus_publishes_by_its_own_rules(website):
    (website / "docusaurus.config.js").write_text(DOCUSAURUS % "handbook")
    found = urls(website)
    assert found == {
        "docs/01-intro.md": BASE + "handbook/intro", "docs/02-Guides/index.mdx": BASE + "handbook/Guides/",
        "docs/02-Guides/03. deep.md": BASE + "handbook/Guides/deep",
        "docs/2024-01-release.md": BASE + "handbook/2024-01-release", "docs/api/api.md": BASE + "handbook/api/",
        "docs/api/own.md": BASE + "handbook/api/other", "docs/docs.md": BASE + "handbook/docs",
        "docs/slug.md": BASE + "handbook/start%20here",
        "blog/2021-08-26-welcome/index.md": BASE + "blog/2021/08/26/welcome",
        "blog/2021-09-01-news.md": BASE + "blog/2021/09/01/news", "src/pages/about.md": BASE + "about"
    }  # fmt: skip
    part = urls(website / "docs" / "api", BASE + "handbook/api/")
    assert part == {"api.md": BASE + "handbook/api/", "own.md": BASE + "handbook/api/other"}


def test_configuration_is_found_next_to_the_pages_or_far_above_them(tmp_path):
    write(tmp_path, "docs/a.md", "website/docusaurus.config.mjs", "src/content/docs/en/guides/b.mdx")
    (tmp_path / "website" / "docusaurus.config.mjs").write_text("presets: [['c', {docs: {path: '../docs'}}]]")
    assert urls(tmp_path / "docs", BASE + "docs/") == {"a.md": BASE + "docs/a"}
    (tmp_path / "astro.config.ts").write_text("starlight({title: 'Docs'})")
    found = urls(tmp_path / "src" / "content" / "docs" / "en" / "guides", BASE + "en/guides/")
    assert found == {"b.mdx": BASE + "en/guides/b/"}


def test_docusaurus_can_have_docs_at_the_root_and_trailing_slashes(website):
    (website / "docusaurus.config.ts").write_text((DOCUSAURUS % "/").replace("// trailing", "trailing"))
    found = urls(website / "docs")
    assert found["01-intro.md"] == BASE + "intro/" and found["02-Guides/03. deep.md"] == BASE + "Guides/deep/"


VERSIONED = """
docs: {
  lastVersion: %s,
  versions: { current: { label: 'Next' %s }, '1.0': { label: '1', path: 'v1' } },
  routeBasePath: 'd',
},
plugins: [['@docusaurus/plugin-content-docs', { id: 'api', path: 'api', routeBasePath: 'reference' }]],
themeConfig: { docs: { sidebar: { hideable: true } } },
"""


@pytest.mark.parametrize(
    ("last", "path", "current", "first", "second"),
    [
        ("'current'", "", "", "v1/", "2.0/"),
        ("'current'", ", path: '/'", "", "v1/", "2.0/"),
        ("undefined", "", "next/", "v1/", ""),
    ],
)
def test_docusaurus_publishes_versions_and_additional_docs(last, path, current, first, second, tmp_path):
    write(tmp_path, "docs/a.md", "versioned_docs/version-1.0/a.md", "versioned_docs/version-2.0/a.md", "api/b.md")
    (tmp_path / "versions.json").write_text('["2.0", "1.0"]')
    (tmp_path / "docusaurus.config.js").write_text(VERSIONED % (last, path))
    assert urls(tmp_path) == {
        "api/b.md": BASE + "reference/b", "docs/a.md": f"{BASE}d/{current}a",
        "versioned_docs/version-1.0/a.md": f"{BASE}d/{first}a", "versioned_docs/version-2.0/a.md": f"{BASE}d/{second}a",
    }  # fmt: skip


TRANSLATED = """
i18n: { defaultLocale: 'en', locales: ['en', "fr", 'pt-BR'], localeConfigs: { fr: { label: 'Français' } } },
presets: [['classic', { docs: { routeBasePath: '%s' }, blog: {} }]],
plugins: [['@docusaurus/plugin-content-docs', { id: 'api', path: 'api', routeBasePath: 'reference' }]],
"""


HUGO = "defaultContentLanguage = 'en'\n[languages.en]\nlanguageName = 'English'\n[languages.fr]\n[languages.zh-cn]\n"
HUGO_FOLDERS = "[languages.en]\ncontentDir = 'content/en'\n[languages.fr]\ncontentDir = 'content/fr'\n"
HUGO_YAML = "defaultContentLanguage: fr\nDefaultContentLanguageInSubdir: true\nlanguages:\n  en: {}\n  fr: {}\n"
I18N = "plugins:\n  - search\n  - i18n:\n      docs_structure: %s\n      languages:\n        - locale: en\n"
I18N += f"          default: true\n        - {{locale: fr, name: Français}}\n{MKDOCS.partition('[search]')[2]}"
OLD_I18N = "plugins:\n  i18n:\n    default_language: en\n    languages: {en: English, fr: Français}\n"


@pytest.mark.parametrize(
    ("config", "text", "pages"),
    [
        ("hugo.toml", HUGO, {"content/a.md": "a/", "content/a.fr.md": "fr/a/", "content/b/index.en.md": "b/",
                             "content/b/index.fr.md": "fr/b/", "content/_index.zh-cn.md": "zh-cn/",
                             "content/v1.de.md": "v1.de/"}),
        ("hugo.yaml", HUGO_YAML, {"content/a.md": "fr/a/", "content/a.en.md": "en/a/", "content/_index.fr.md": "fr/"}),
        ("hugo.toml", HUGO_FOLDERS, {"content/en/a.md": "a/", "content/fr/a.md": "fr/a/", "content/en/_index.md": "",
                                     "content/fr/b/index.md": "fr/b/"}),
        ("site/hugo.yaml", "languages:\n  de: {contentDir: german}\n  EN: {contentDir: english}\n",
         {"site/german/a.md": "de/a/", "site/english/b/_index.md": "b/"}),
        ("hugo.toml", "title = 'x'\n", {"content/a.en.md": "a/", "content/node.js.md": "node.js/"}),
        ("mkdocs.yml", I18N % "suffix", {"docs/a.en.md": "a/", "docs/a.fr.md": "fr/a/", "docs/index.fr.md": "fr/",
                                         "docs/b.md": "b/", "docs/node.js.md": "node.js/"}),
        ("mkdocs.yml", OLD_I18N, {"docs/a.md": "a/", "docs/s/a.fr.md": "fr/s/a/"}),
        ("mkdocs.yml", I18N % "folder", {"docs/en/a.md": "a/", "docs/en/index.md": "", "docs/fr/a.md": "fr/a/"}),
        ("mkdocs.yml", MKDOCS, {"docs/index.md": "", "docs/a.fr.md": "a.fr/"}),
    ],
)  # fmt: skip
def test_translated_sibling_pages_are_published_below_their_locales(config, text, pages, tmp_path):
    write(tmp_path, *pages)
    (tmp_path / config).write_text(text)
    assert urls(tmp_path) == {path: BASE + url for path, url in pages.items() if url is not None}


@pytest.mark.parametrize("text", [
    "plugins: [i18n]\n", "plugins:\n  i18n: 3\n", "languages: 3\n", "languages:\n  - fr\n", "- a\n", "{", "",
    "plugins:\n  - i18n: {languages: [fr, 3, {locale: }]}\n",
])  # fmt: skip
@pytest.mark.parametrize("config", ["mkdocs.yml", "hugo.yaml"])
def test_configuration_with_unexpected_locales_is_read(config, text, tmp_path):
    write(tmp_path, "docs/index.md", "docs/a.md", "content/_index.md", "content/a.md")
    (tmp_path / config).write_text(text)
    folder = "docs" if config == "mkdocs.yml" else "content"
    assert urls(tmp_path / folder)["a.md"] == BASE + "a/"


@pytest.mark.parametrize("route", ["docs", "/"])
def test_docusaurus_publishes_translations_below_their_locales(route, tmp_path):
    french, portuguese = (f"i18n/{locale}/docusaurus-plugin-content-" for locale in ("fr", "pt-BR"))
    (tmp_path / "versions.json").write_text('["1.0"]')
    (tmp_path / "docusaurus.config.js").write_text(TRANSLATED % route)
    below = f"{route}/".lstrip("/")
    pages = {
        "docs/a.md": f"{below}next/a", f"{french}docs/current/02-b/a.md": f"fr/{below}next/b/a",
        f"{french}docs/version-1.0/a.md": f"fr/{below}a", f"{french}docs-api/current/b.md": "fr/reference/b",
        f"{french}blog/2021-09-01-news.md": "fr/blog/2021/09/01/news", f"{french}pages/about.md": "fr/about",
        f"{portuguese}docs/current/index.md": f"pt-BR/{below}next/", f"{portuguese}pages/_part.md": None,
        "i18n/de/docusaurus-plugin-content-docs/current/a.md": None,
    }  # fmt: skip
    write(tmp_path, *pages)
    assert urls(tmp_path) == {path: BASE + url for path, url in pages.items() if url is not None}
    part = urls(tmp_path / french.rstrip("-").rpartition("/")[0] / "docusaurus-plugin-content-pages", BASE + "fr/")
    assert part == {"about.md": BASE + "fr/about"}


def test_explicit_style_wins_over_the_generator(tmp_path):
    write(tmp_path, "docs/a.md")
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)
    assert urls(tmp_path, style="html") == {"docs/a.md": BASE + "a.html"}
    assert urls(tmp_path, style="keep") == {"docs/a.md": BASE + "docs/a.md"}


def test_one_url_has_one_file_and_index_wins(tmp_path):
    write(tmp_path, "a/README.md", "a/index.md", "b.md", "b.ipynb")
    assert set(urls(tmp_path, style="directory")) == {"a/index.md", "b.md"}


def test_links_lead_to_published_urls_of_files(tmp_path):
    write(tmp_path, "docs/guide/a.md", "docs/b.md")
    (tmp_path / "mkdocs.yml").write_text(MKDOCS)
    settings = recognised(tmp_path)
    path = str(tmp_path / "docs/guide/a.md")
    body = b"[b](../b.md#part) [itself](#top) [out](https://e.test/x.md) [picture](p.png) [index](index.md)"
    assert settings.page(path, settings.url_of(path), body, None).links == (
        BASE + "b/", "https://e.test/x.md", BASE + "guide/p.png", BASE + "guide/",
    )  # fmt: skip


def test_other_files_are_counted_by_suffix(tmp_path):
    write(tmp_path, "a.md", "p.png", "q.PNG", "s.svg", "LICENSE", ".hidden.png", "_sources/a.rst.txt")
    listing = FolderSettings(path=str(tmp_path), base_url=BASE).files()
    assert listing.skipped == {".png": 2, ".svg": 1, "without suffix": 1}
    assert listing.excluded == 1


REWRITES = "cleanUrls: true, rewrites: {\n 'en/:rest*': ':rest*',\n 'packages/:pkg/docs/:slug*': ':pkg/:slug*',\n"
REWRITES += " 'old/name.md': 'new.md' },"


def test_paths_follow_the_rewrites_of_a_configuration(tmp_path):
    said = {
        "en/index.md": "", "en/guide/a.md": "guide/a", "packages/x/docs/b.md": "x/b", "old/name.md": "new",
        "fr/a.md": "fr/a",
    }  # fmt: skip
    write(tmp_path, ".vitepress/config.ts", *said, **{".vitepress/config.ts": REWRITES})
    assert urls(tmp_path) == {path: BASE + url for path, url in said.items()}


def test_pages_of_installed_packages_are_not_pages_of_the_folder(tmp_path):
    installed = ["node_modules/vue/README.md", "docs/node_modules/@a/b/docs/x.md", "lib/site-packages/y/README.rst"]
    write(tmp_path, "docs/a.md", "node_modules.md", *installed, "web/bower_components/z/README.md")
    assert [*urls(tmp_path)] == ["docs/a.md", "node_modules.md"]


@pytest.mark.parametrize(
    ("config", "said", "root"),
    [
        ("_config.yml", "exclude:\n- drafts/  # not yet\n# more\n- '*.txt'\n- CODE.md\nplugins: [x]\n", ""),
        ("_config.yml", "title: x\nexclude: [drafts, '*.txt', 'CODE.md']\n", ""),
        ("mkdocs.yml", "site_name: x\nexclude_docs: |\n  drafts/\n  *.txt\n  CODE.md\nnav: []\n", "docs/"),
    ],
)  # fmt: skip
def test_pages_excluded_by_a_configuration_are_skipped(tmp_path, config, said, root):
    pages = [f"{root}{name}" for name in ("a.md", "drafts/b.md", "notes.txt", "CODE.md", "draft.md")]
    write(tmp_path, config, *pages, **{config: said})
    assert sorted(urls(tmp_path)) == [f"{root}a.md", f"{root}draft.md"]


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    "text",
    [
        "---\na: " + "[" * 15_000 + "\n---\n",
        "+++\na = " + "[" * 15_000 + "\n+++\n",
        "---\na: !!int ''\n---\n",
        "---\na: !!bool x\n---\n",
        f"---\n{BOMB}date: *a9\n---\n",
    ],
    ids=["deep YAML", "deep TOML", "no integer", "no boolean", "aliases that expand to 10^9 values"],
)
def test_front_matter_that_cannot_be_read_sets_nothing(text):
    assert front_matter(text.encode()) == {}


@pytest.mark.parametrize("text", ['{"build":' * 100_000, "[" * 100_000])
def test_configuration_that_is_nested_too_deeply_sets_nothing(text, tmp_path):
    write(tmp_path, "a.md")
    (tmp_path / "docfx.json").write_text(text)
    assert urls(tmp_path) == {"a.md": f"{BASE}a.html"}
