"""Jekyll's sources are read as its readers see them: values, conditions, loops over data files, includes."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from pipelines.indexing.folders.folder import Folder
from pipelines.indexing.folders.includes import Includes

FILES = {
    "_config.yml": "title: Docs\nowner: {name: Ada}\nbeta: false\ncollections: [guides]\nbaseurl: /x\n"
    "defaults:\n- {scope: {path: ''}, values: {kind: page, level: 1}}\n"
    "- {scope: {path: _guides, type: guides}, values: {level: 2}}\n",
    "_data/ports.yml": "- {name: web, port: 80}\n- {name: tls, port: 443, note: '*safe*'}\n",
    "_data/limits.json": '{"disk": 5}',
    "_data/people.csv": "name,role\nAda,admin\nBo,reader\n",
    "_data/team/langs.tsv": "id\ttext\nfr\tFrench\n",
    "_data/wrong.yml": "a: [",
    "_includes/note.html": "<div>{% if include.title %}{{ include.title }}: {% endif %}{{ include.content }}</div>",
    "_includes/again.html": "x{% include again.html %}{% include again.html %}",
    "_includes/posts.html": "{% for post in site.posts %}{{ post.title }}{% endfor %}",
}
HEAD = "---\ntitle: Setup\ntags: [a, b]\n---\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def reader(site: Path) -> Includes:
    return Includes(LocalFileSystem(), f"{site}/", jekyll=(f"{site}/_config.yml", f"{site}/"))


def published(site: Path, text: str, name: str = "a.md", head: str = HEAD) -> str:
    return reader(site)(f"{site}/{name}", (head + text).encode()).decode().removeprefix(head)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{ site.title }} by {{ site.owner.name }}", "Docs by Ada"),
        ("# {{ page.title | upcase }} {{ page.tags | join: ', ' }}", "# SETUP a, b"),
        ("{% assign port = 8080 %}Open {{ port }}.", "Open 8080."),
        ("{% capture who %}{{ site.owner.name }} L.{% endcapture %}By {{ who }}", "By Ada L."),
        ("{% if site.beta %}New{% else %}Old{% endif %}", "Old"),
        ("{% if page.missing %}A{% elsif page.title == 'Setup' %}B{% else %}C{% endif %}", "B"),
        ("{% unless page.missing %}yes{% endunless %}", "yes"),
        ("{% case page.title %}{% when 'Setup' %}one{% else %}two{% endcase %}", "one"),
        ("{% for p in site.data.ports %}- {{ p.name }} {{ p.port }} {{ p.note }}\n{% endfor %}",
         "- web 80 \n- tls 443 *safe*\n"),
        ("{% for p in site.data.people %}{{ p.name }}: {{ p.role }};{% endfor %}", "Ada: admin;Bo: reader;"),
        ("{{ site.data.limits.disk }} {{ site.data.team.langs[0].text }}", "5 French"),
        ("{% for x in site.data.none %}x{% else %}none{% endfor %}", "none"),
        ("{% tablerow p in site.data.ports cols:2 %}{{ p.name }}{% endtablerow %}",
         '<tr class="row1">\n<td class="col1">web</td><td class="col2">tls</td></tr>\n'),
        ("a{% comment %} hidden {{ site.title }} {% endcomment %}b", "ab"),
        ("{{ page.missing }}.{{ page.missing | default: 'none' }}", ".none"),
        ('{% include note.html content="Save first" title=page.title %}', '<div>Setup: Save first</div>'),
        ("{% assign f = 'note' %}{% include {{ f }}.html content='x' %}", '<div>x</div>'),
        ("[a]({{ '/b.html' | relative_url }}) [c]({{ site.baseurl }}/c.html)", "[a](/b.html) [c](/c.html)"),
        ("{{ '*x*' | markdownify | strip }} {{ site.data.ports | where: 'name', 'tls' | map: 'port' | first }}",
         "<p><em>x</em></p> 443"),
        ("{{ site.data.ports | where_exp: 'p', 'p.port > 100' | map: 'name' }}", "tls"),
        ("{% assign g = site.data.people | group_by: 'role' %}{{ g[0].name }} {{ g[0].items.size }}", "admin 1"),
        ("{{ page.kind }} {{ page.level }}", "page 1"),
        ("```\n{{ site.title }}\n```", "```\nDocs\n```"),
    ],
)  # fmt: skip
def test_page_shows_what_its_readers_see(text, shown, site):
    assert published(site, text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "{% raw %}{{ site.title }}{% endraw %}", "`{% raw %}{% if x %}{% endraw %}`",
        "```\n{% raw %}{% for p in site.data.ports %}{% endfor %}{% endraw %}\n```",
        "{{ nothing }}", "{{ site.nothing }}", "{{ page.url }}", "{{ site.time | date: '%Y' }}",
        "{{ page.title | plug }}",
        "{{ site.data.ports | map: 'missing' | strip }}",
        "{{ 'now' | date: '%Y' }}", '{% callout title="Important" %}', "{% include gone.html content='x' %}",
        "{% if site.github %}a{% else %}b{% endif %}", "{% for post in site.posts %}{{ post.title }}{% endfor %}",
        "{% for g in site.guides %}x{% endfor %}", "All {% include posts.html %}.", "{% if paginator %}x{% endif %}",
        "{% assign last = site.posts | first %}{% if last %}a{% else %}b{% endif %}",
        "{{ site.data.wrong.a }} {{ site.title }}", "{% if %}x{% endif %}", "{{ site.title", "{% if a %}",
        "{% endif %}",
    ],
)  # fmt: skip
def test_what_only_the_build_knows_is_left_as_it_is(text, site):
    assert published(site, text) == text


def test_rest_of_a_page_with_an_unknown_part_is_rendered(site):
    text = "{% seo %}{% highlight sh %}run {{ site.title }}{% endhighlight %} {{ page.url }}"
    assert published(site, text) == text.replace("{{ site.title }}", "Docs")
    assert published(site, "{{ #each }} {{ site.title }}") == "{{ #each }} Docs"
    inner = "{% raw %}{{ x }}{% endraw %}"
    assert published(
        site, f"{{% if page.title %}}{inner}{{% endif %}}{{% if page.title %}}{{% toc %}}{{% endif %}}"
    ) == (f"{inner}{{% toc %}}")


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in (1..1000000000) %}x{% endfor %}",
        "{% for i in (1..3000) %}{% for j in (1..3000) %}{% endfor %}{% endfor %}",
        "{% for i in (1..9000) %}" + "{% if a %}{% endif %}" * 900 + "{% endfor %}",
        "{% for i in (1..9000) %}" + "x" * 900 + "{% endfor %}",
        "{% include again.html %}",
        "{% if page %}" * 500 + "{% endif %}" * 500,
        "{% assign a = (1..1000000000) | reverse %}",
        "{% assign a = 'aaaaaaaaaaaaaaaa' %}" + "{% assign a = a | replace: 'a', a %}" * 9,
        "{% assign a = 'aaaaaaaaaaaaaaaa' %}" + "{% assign a = a | append: a %}" * 40,
        "{% assign a = 9 %}" + "{% assign a = a | times: a %}" * 60,
        "{{" * 50_000, "{% raw %}" * 50_000, "{% a" + " " * 50_000 + "%}", "{% comment %}" * 5_000,
        "{{ a" + " | append: 'x'" * 5_000 + " }}",
    ],
)  # fmt: skip
def test_page_beyond_the_limits_is_left_as_it_is(text, site):
    assert published(site, f"{text}{{{{ site.title }}}}") == f"{text}{{{{ site.title }}}}"


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("a.md", ""), ("a.md", "# No front matter\n"), ("a.md", "---\nrender_with_liquid: false\n---\n"),
        ("a.rst", "---\n---\n"), ("a.ipynb", "---\n---\n"),
    ],
)  # fmt: skip
def test_file_that_jekyll_does_not_render_is_unchanged(name, head, site):
    assert published(site, "{{ site.title }}", name, head) == "{{ site.title }}"


def test_folder_of_jekyll_is_recognised_as_one(site, tmp_path_factory):
    other = tmp_path_factory.mktemp("mkdocs")
    (other / "mkdocs.yml").write_text("site_name: a\n")
    (other / "docs").mkdir()
    found = [Folder(path=str(path), base_url="https://x.example/").recognised().sources for path in (site, other)]
    assert [sources.liquid for sources in found] == [True, False]


def test_pages_of_other_generators_are_unchanged(site):
    text = f"{HEAD}{{{{ site.title }}}}{{% if a %}}b{{% endif %}}".encode()
    assert Includes(LocalFileSystem(), f"{site}/")(f"{site}/a.md", text) == text


def test_empty_front_matter_line_ends_and_html_pages_are_known(site):
    assert published(site, "{{ site.title }}", head="---\n---\n") == "Docs"
    assert published(site, "{{ page.title }}\r\n", head="---\r\ntitle: A\r\n---\r\n") == "A\n"
    assert published(site, "<p>{{ site.title }}</p>", "a.html") == "<p>Docs</p>"
    assert published(site, "{{ page.level }} {{ page.name }}", "_guides/b.md") == "2 b.md"


def test_html_page_shows_no_front_matter_and_keeps_its_title_and_url(site):
    body = b"---\ntitle: A & B\npermalink: /c/\n---\n<p>Text.</p>"
    (site / "a.html").write_bytes(body)
    folder = Folder(path=str(site), base_url="https://x.example/").recognised()
    url = folder.url_of(f"{site}/a.html", body)
    page = folder.page(f"{site}/a.html", url, body, None)
    assert (page.url, page.body) == (url, b"<title>A &amp; B</title>\n<p>Text.</p>")
    plain = b"<p>---</p>"
    assert folder.page(f"{site}/a.html", url, plain, None).body == plain


def test_table_made_by_a_loop_stays_one_table(site):
    rows = "    {% for p in site.data.ports %}\n      <tr>\n        {% if p.note %}\n        <td>{{ p.name }}</td>\n"
    text = f"<table>\n  <tbody>\n{rows}        {{% endif %}}\n      </tr>\n    {{% endfor %}}\n  </tbody>\n</table>\n"
    assert "\n\n" not in published(site, text).replace(" ", "")


def test_change_of_data_changes_the_page_which_has_no_stamp(site):
    text, path = f"{HEAD}{{% for p in site.data.ports %}}{{{{ p.name }}}} {{% endfor %}}".encode(), f"{site}/a.md"
    includes = reader(site)
    before = includes(path, text)
    assert includes.pages == {path}
    (site / "_data/ports.yml").write_text("- {name: ssh}\n")
    after = reader(site)(path, text)
    assert (before, after) == (f"{HEAD}web tls ".encode(), f"{HEAD}ssh ".encode())


def test_data_outside_the_folder_is_not_read(site, tmp_path_factory):
    secret = tmp_path_factory.mktemp("other") / "secret.yml"
    secret.write_text("key: hidden\n")
    (site / "_data/secret.yml").symlink_to(secret)
    (site / "_includes/secret.html").symlink_to(secret)
    said = "{{ site.data.secret.key }}.{% include ../../secret.yml %}{% include secret.html %}"
    assert "hidden" not in published(site, said)
    (site / "docs").mkdir()
    text = HEAD + "{{ site.data.limits.disk }}"
    inner = Includes(LocalFileSystem(), f"{site}/docs/", jekyll=(f"{site}/_config.yml", f"{site}/"))
    assert inner(f"{site}/docs/a.md", text.encode()).decode() == text


@pytest.mark.parametrize(
    "config", ["", "a: [", "- 1\n", "defaults: 3\ncollections: 4\n", "defaults: [1, {scope: 2}]\n"]
)
def test_odd_configuration_is_not_an_error(config, site):
    (site / "_config.yml").write_text(config)
    assert published(site, "{{ page.title }}") == "Setup"


def test_library_is_loaded_only_for_pages_with_tags(site):
    code = (
        "import sys; from tests.unit.indexing.test_jekyll import HEAD, published; from pathlib import Path\n"
        f"site = Path({str(site)!r}); published(site, 'Plain.'); assert 'liquid' not in sys.modules\n"
        "published(site, '{{ site.title }}'); assert 'liquid' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
