"""A collection is described by a file, by flags or in Python, with the defaults of its final settings."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from jobs import prune
from jobs.reindex import Building, Running
from pipelines.indexing.building.pools import plan_pools
from pipelines.indexing.collection import (
    Collection,
    IndexChoices,
    InvalidCollection,
    Site,
    compose_collection,
    load_collection,
)
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.settings import ReindexOptions
from pipelines.page.cut.chunker import Chunker
from pipelines.records import IndexSettings
from pipelines.store import Store

EXAMPLES = Path(__file__).parents[3] / "collections"
URL, BASE = "https://docs.test/guide/", "https://docs.test/"


def test_url_is_crawled_folder_is_read_and_file_is_a_collection(tmp_path):
    crawled = compose_collection(URL, ["https://api.test/"])
    assert (crawled.name, crawled.sites[0].start_urls) == ("docs.test", (URL, "https://api.test/"))
    assert crawled == compose_collection(start_urls=[URL, "https://api.test/"])
    read = compose_collection(str(tmp_path), base_url=BASE)
    assert (read.name, read.folders[0].path) == ("docs.test", str(tmp_path))
    assert read == compose_collection(path=str(tmp_path), base_url=BASE)
    styled = compose_collection(path=str(tmp_path), base_url=BASE, crawl={"url_style": "html"})
    assert (read.folders[0].url_style, styled.folders[0].url_style) == ("auto", "html")
    for target in ("s3://bucket/docs", f"{tmp_path}/*.html"):
        assert compose_collection(target, base_url=BASE).folders[0].path == target
    page = tmp_path / "manual.pdf"
    page.write_bytes(b"%PDF-")
    assert compose_collection(str(page), base_url=BASE).folders[0].path == str(page)
    file = tmp_path / "handbook.yaml"
    file.write_text(f"sites: [{{start_urls: [{URL}]}}]\nindex: {{chunk_size: 100}}")
    assert compose_collection(str(file)) == load_collection(file)
    assert load_collection(file).name == "handbook"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing to index: give a URL, a folder with --base-url URL, or a collection file"),
        ({"target": "."}, "'.' needs --base-url"),
        ({"base_url": BASE}, "needs a folder"),
        ({"target": "/no/such/folder", "base_url": BASE}, "there is no file or folder '/no/such/folder'"),
        ({"target": "docs.test"}, "begins with https://: `raydex index https://docs.test`"),
        ({"target": "docs.test:8000/guide/"}, "`raydex index https://docs.test:8000/guide/`"),
        ({"target": "localhost:8000"}, "`raydex index https://localhost:8000`"),
        ({"stored": {"name": "old"}}, "collection 'old' has no stored sources"),
        ({"target": ".", "base_url": BASE, "start_urls": [URL]}, "can't be combined"),
        ({"target": ".", "base_url": BASE, "path": "docs"}, "'.' and --path 'docs'"),
        ({"target": "no/such.yaml"}, "no/such.yaml can't be read: No such file"),
        ({"target": URL, "crawl": {"concurrency": 0}}, "sites.0.concurrency is 0"),
        ({"target": URL, "index": {"chunk_unit": "words"}}, "index.chunk_unit is 'words'"),
        (
            {"target": URL, "crawl": {"include": ["("]}},
            "sites.0.include.0: URL pattern '(' is not a regular expression",
        ),
        ({"path": "/srv", "base_url": "docs"}, "folders.0.base_url: base URL 'docs' must begin with http://"),
        ({"path": "/srv", "base_url": BASE, "crawl": {"url_style": "pretty"}}, "folders.0.url_style is 'pretty'"),
        ({"target": URL, "crawl": {"url_style": "html"}}, "--url-style html"),
        ({"target": URL, "tags": {"(": "x"}}, "URL pattern '(' is not a regular expression"),
        ({"target": URL, "boosts": {"(": 2}}, "URL pattern '(' is not a regular expression"),
        ({"target": URL, "boosts": {"/api/": 0}}, "boosts./api/ is 0"),
        ({"target": URL, "synonyms": [["k8s"]]}, "synonyms.0 is a list: it must have at least 2"),
        ({"target": URL, "synonyms": [["k8s", " "]]}, "synonyms.0.1 is ' '"),
        ({"target": URL, "pinned": [{"question": "How?", "url": "/install"}]}, "pinned.0.url is '/install'"),
        ({"target": URL, "name": "Not A Name"}, "name is 'Not A Name'"),
    ],
)
def test_unusable_target_is_named_with_the_remedy(given, words):
    with pytest.raises(InvalidCollection) as error:
        compose_collection(**given)
    assert words in str(error.value)


def test_file_with_a_wrong_encoding_is_named(tmp_path):
    file = tmp_path / "café.yaml"
    file.write_text('title: "Café"', "latin-1")
    with pytest.raises(InvalidCollection, match=r"café.yaml is not UTF-8"):
        load_collection(file)


def test_repeated_key_is_an_error_in_a_collection_file(tmp_path):
    file = tmp_path / "docs.yaml"
    file.write_text(f"sites:\n  - start_urls: [{URL}]\n    exclude: [/blog/]\n    exclude: [/old/]\n")
    with pytest.raises(InvalidCollection, match=r"docs\.yaml is not valid YAML: line 4, column 5: the key exclude is"):
        load_collection(file)


def test_only_a_host_name_is_taken_for_a_url_without_its_scheme():
    for target in ("/no/such", "./docs", "../docs.d/x", "docs", "my docs.txt"):
        with pytest.raises(InvalidCollection) as error:
            compose_collection(target)
        assert "https" not in str(error.value), target


def test_stored_collection_is_reindexed_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    first = compose_collection("docs", base_url=BASE, name="docs", index={"chunk_size": 80})
    stored = first.as_stored()
    assert stored["folders"][0]["path"] == str(tmp_path / "docs")
    monkeypatch.chdir("/")
    again = compose_collection(stored=stored, name="docs", max_delete_ratio=0.5)
    assert again.model_dump(mode="json") == stored | {"max_delete_ratio": 0.5}
    bucket = compose_collection("s3://bucket/docs", base_url=BASE)
    assert bucket.as_stored() == bucket.model_dump(mode="json")


def test_single_keys_of_a_file_are_replaced(tmp_path):
    file = tmp_path / "docs.yaml"
    file.write_text(
        f"sites: [{{start_urls: [{URL}], max_pages: 5}}]\nfolders: [{{path: /srv, base_url: {BASE}}}]\n"
        "index: {model: 'hash:64', chunk_size: 100}\ntags: {/a/: a}"
    )
    changed = compose_collection(
        str(file), crawl={"exclude": ["/old/"], "delay_s": 1.0}, index={"chunk_size": 80}, name="other", version=None
    )
    assert changed.name == "other"
    assert (changed.sites[0].max_pages, changed.sites[0].delay_s, changed.sites[0].exclude) == (5, 1.0, ("/old/",))
    assert changed.folders[0].exclude == ("/old/",)
    assert (changed.index.model, changed.index.chunk_size) == ("hash:64", 80)
    assert changed.tags == {"/a/": "a"}


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_bundled_collection_files_are_readable(file):
    assert load_collection(file).name


def test_logo_is_an_image_next_to_the_file_and_stored_with_the_collection(tmp_path):
    file = tmp_path / "docs.yaml"
    (tmp_path / "logo.png").write_bytes(b"\x89PNG")
    file.write_text(f"sites: [{{start_urls: [{URL}]}}]\nlogo: logo.png")
    stored = load_collection(file).as_stored()
    assert stored["logo"] == "data:image/png;base64,iVBORw=="
    assert compose_collection(stored=stored).logo == stored["logo"]
    (tmp_path / "logo.png").write_bytes(b"x" * 100_000)
    with pytest.raises(InvalidCollection, match="logo: the picture has 133,358 characters, at most 100,000"):
        load_collection(file)


@pytest.mark.parametrize("logo", ["no.png", "https://x.test/a.png", "data:text/html;base64,PGI+", "docs.yaml"])
def test_logo_must_be_an_image(tmp_path, logo):
    file = tmp_path / "docs.yaml"
    file.write_text(f"sites: [{{start_urls: [{URL}]}}]\nlogo: '{logo}'")
    with pytest.raises(InvalidCollection, match=r"logo: '.*' is not a picture: give a file \(.svg, .png"):
        load_collection(file)


def test_each_default_is_declared_once():
    """Collection file, flags and a run's final settings agree for every description of a collection."""
    assert Site(start_urls=[URL]).hosts() == [CrawlSettings(start_urls=(URL,))]
    assert IndexChoices(model=IndexSettings().model).settings() == IndexSettings()
    assert compose_collection(URL) == Collection(name="docs.test", sites=[Site(start_urls=[URL])])
    chunker, pools = inspect.signature(Chunker).parameters, inspect.signature(plan_pools).parameters
    for name in ("size", "overlap", "unit"):
        assert chunker[name].default == getattr(IndexSettings(), f"chunk_{name}")
    options = ReindexOptions()
    assert pools["gpus"].default == options.gpus_per_embedder
    assert pools["max_embedders"].default == options.max_embedders
    keep = inspect.signature(prune.run).parameters["keep"].default
    assert keep == inspect.signature(Store.prune).parameters["keep"].default
    flags = {**Building().options(), **Running().model_dump()}
    assert flags["resources"] == options.resources
    for name in flags.keys() & {field.name for field in fields(ReindexOptions)}:
        assert flags[name] == getattr(options, name)
