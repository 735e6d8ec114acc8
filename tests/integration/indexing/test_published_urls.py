"""A folder's site tells its own URLs; a site that is down or replies with nonsense changes nothing."""

from pathlib import Path

import pytest
from kit.reindexing import Jobs, html_page
from kit.web import Site as WebSite
from kit.workshop import BASE

pytestmark = pytest.mark.slow
PAGES = {"Guide/My_Page.md": "guide/my-page/", "Guide/02-install.md": "guide/install/", "notes.md": "about/notes/"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, path in enumerate(PAGES):
        (tmp_path / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / path).write_text(f"# Page {number}\n\nThis is what page {number} says.\n")
    return tmp_path / "docs"


def cited(jobs: Jobs) -> set[str]:
    return {source.partition("#")[0] for source in jobs.texts()}


def test_site_is_asked_and_its_last_answer_is_kept_while_it_is_down(jobs: Jobs, folder: Path) -> None:
    with WebSite({"/docs/": html_page("Docs", {"s": "The first page."})}) as web:
        urls = "".join(f"<url><loc>{web.url}/docs/{url}</loc></url>" for url in PAGES.values())
        web.routes["/sitemap.xml"] = f"<urlset>{urls}</urlset>"
        jobs.common = [folder, "--base-url", f"{web.url}/docs/", "--no-ray", "--model", "hash:64"]
        refused = jobs.reindex()  # a private address
        assert web.paths() == [] and "no generator is recognised" in refused.messages
        assert cited(jobs) == {f"docs/{path}" for path in PAGES}
        jobs.common.append("--allow-private")
        asked = jobs.reindex()
        assert "lists 4 URLs: 3 of 3 files are cited at them" in asked.messages, asked.messages
        assert cited(jobs) == {f"docs/{url}" for url in PAGES.values()}
        assert asked.summary["chunks"]["embedded"] == 0  # the pages moved
        web.routes = {path: html_page("Oops", {"s": "Not here."}) for path in ("/docs/", "/sitemap.xml", "/robots.txt")}
        for name in ("objects.inv", "search/search_index.json", "llms.txt"):
            web.routes[f"/docs/{name}"] = html_page("Oops", {"s": "Not here."})
        assert "when it last answered" in jobs.reindex().messages
        assert cited(jobs) == {f"docs/{url}" for url in PAGES.values()}
    silent = jobs.reindex()
    assert silent.code == 0 and "when it last answered" in silent.messages
    assert silent.summary["pages"]["unchanged"] == 3


def test_site_without_a_list_is_cited_like_the_links_between_its_pages(jobs: Jobs, folder: Path) -> None:
    links = "".join(f"- [a]({BASE}{path.removesuffix('.md')}.html)\n" for path in PAGES)
    (folder / "index.md").write_text(f"# All pages\n\nThese pages say what there is to know.\n\n{links}")
    jobs.common = [folder, "--base-url", BASE, "--no-ray", "--model", "hash:64"]
    said = jobs.reindex().messages
    assert f"are cited like the links between them, such as {BASE}Guide/02-install.html" in said
    assert cited(jobs) == {"", *(path.replace(".md", ".html") for path in PAGES)}


def test_sitemap_can_be_a_file(jobs: Jobs, folder: Path, tmp_path: Path) -> None:
    jobs.common = [folder, "--base-url", BASE, "--no-ray", "--model", "hash:64"]
    listing = tmp_path / "sitemap.txt"
    missing = jobs.reindex("--sitemap", listing)
    assert missing.code == 2 and "can't be read: No such file" in missing.messages
    listing.write_text("https://elsewhere.test/a\n")
    other = jobs.reindex("--sitemap", listing)
    assert other.code == 2 and f"lists no URL below {BASE}; it lists https://elsewhere.test/a" in other.messages
    listing.write_text("".join(f"{BASE}{url}\n" for url in PAGES.values()))
    assert jobs.reindex("--sitemap", listing).code == 0
    assert cited(jobs) == set(PAGES.values())
    again = jobs.verb("reindex")  # with the stored settings
    assert again.summary["pages"]["unchanged"] == 3 and cited(jobs) == set(PAGES.values())
