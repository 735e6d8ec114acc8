"""The source reading benchmark: building and caching sites, and comparing a folder with its built site."""

import re

import pytest

from benchmarks.reading.builds import Build, Built, NoBuild, all_builds, built
from benchmarks.reading.compare import Share
from benchmarks.reading.folders import HOST, BuiltSite
from benchmarks.reading_sources import measure, table

PACKAGE = r"pypi:[^=]+==[\d.]+|npm:.+@[\d.]+|debian:\w+/[\w.+-]+"
PAGE = '<html><head><title>{0}</title></head><body><main><h1 id="{2}">{0}</h1>{1}</main></body></html>'
TEXT = "<p>Every word of this paragraph stands in the source of the page.</p>"


def page(title, body):
    return PAGE.format(title, body, title.lower())


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_html", ".html").replace("_md", ".md").replace("_yml", ".yml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_finished_build_is_reused_unless_its_recipe_changes(tmp_path):
    build = Build("one", "Shell", ["echo again >> ../../count; mkdir $SITE; echo '<p>x' > $SITE/index.html"])
    assert (built(build, tmp_path).site / "index.html").exists()
    assert built(build, tmp_path).work == built(build, tmp_path).work
    assert (tmp_path / "builds" / "count").read_text().split() == ["again"]
    other = Build("one", "Shell", [*build.build, "true"])
    assert other.key != build.key
    built(other, tmp_path)
    assert (tmp_path / "builds" / "count").read_text().split() == ["again", "again"]


def test_failed_build_says_why_and_is_retried(tmp_path):
    build = Build("one", "Shell", ["echo no such theme >&2; exit 3"])
    for _ in range(2):
        with pytest.raises(NoBuild, match=r"`echo no such theme .*` failed: no such theme; see .*log"):
            built(build, tmp_path)
    with pytest.raises(NoBuild, match=r"no page in the output folder; see .*log"):
        built(Build("two", "Shell", ["true"]), tmp_path)
    with pytest.raises(NoBuild, match="no nowhere-to-be-found on this machine"):
        built(Build("three", "Shell", ["true"], needs=["nowhere-to-be-found"]), tmp_path)


@pytest.mark.parametrize(("link", "suffix"), [("plain", ""), ("plain.html", ".html")])
def test_built_file_is_served_as_a_static_host_does(tmp_path, link, suffix):
    write(
        tmp_path,
        index_html=page("Home", f'<a href="{link}">plain</a> <a href="guide/">guide</a>'),
        guide__index_html=page("Guide", TEXT),
        plain_html=page("Plain", TEXT),
        other_html=page("Other", TEXT),
        old_html='<meta http-equiv="refresh" content="0; url=plain">',
    )
    site = BuiltSite(tmp_path, HOST + "x/")
    served = {name: site[f"{HOST}x/{name}"] for name in ("", "guide/", "guide", "plain.html", "other.html")}
    assert {name: found and found.path for name, found in served.items()} == {
        "": "index.html", "guide/": "guide/index.html", "guide": "guide/index.html", "plain.html": "plain.html",
        "other.html": "other.html",
    }  # fmt: skip
    assert (site[f"{HOST}x/other"] is None) == bool(suffix)
    ends = ("", "guide/", f"plain{suffix}", f"other{suffix}")
    assert {page.url for page in site.pages} == {f"{HOST}x/{end}" for end in ends}
    assert site[f"{HOST}x/old.html"] is None
    assert f"{HOST}x/old.html" in site.moved


def test_folder_is_compared_with_the_site_built_from_it(tmp_path):
    work = write(
        tmp_path / "work",
        mkdocs_yml="site_name: x\n",
        docs__index_md="# Home\n\nEvery word of this paragraph stands in the source of the page.\n",
        docs__guide_md="# Guide\n\nHere it is.\n\n## First step\n\nDo this lost thing.\n\n<h3>Hint</h3>\n\nSee.\n\n"
        "## Second step\n\nThen.\n",
        docs__gone_md="# Gone\n\nThis page of many words has moved to a place that no rule would ever have guessed.\n",
    )
    site = write(
        tmp_path / "site",
        index_html=page("Home", TEXT),
        guide__index_html=page(
            "Guide",
            '<p>Here it is.</p><h2 id="first-step">First step</h2><p>Do this thing.</p><h3>Hint</h3><p>See.</p>'
            '<h2 id="step-2">Second step</h2><p>Then.</p>',
        ),
        moved__index_html=page(
            "Gone", "<p>This page of many words has moved to a place that no rule would ever have guessed.</p>"
        ),
    )
    result = measure(Built(Build("x", "MkDocs", [], folder="docs"), work, site), 60)
    assert result.recognised == "MkDocs"
    assert result.urls == Share(2, 3)
    assert result.wrong["urls"] == ["gone/ -> moved/"]
    assert result.anchors.right == result.anchors.of - 1
    assert result.wrong["anchors"] == ["guide/index.html: 'Second step' #second-step -> #step-2"]
    assert result.total.recall.share == 1.0
    assert result.pages["guide/index.html"].extra == ["Do this [lost] thing Hint"]
    assert "| MkDocs | x | 3 | 0.667 |" in table([result])


def test_each_table_entry_names_the_source_of_its_pages():
    for build in all_builds():
        assert all(re.fullmatch(PACKAGE, package) for package in build.sources.values()), build.name
        assert build.counts("index.html") or build.only, build.name
