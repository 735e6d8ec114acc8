"""Pages with equal text are one page. Pages with different texts are not, regardless of their canonical URLs."""

from contextlib import closing
from typing import Any

import pytest

from pipelines.indexing.copies import SKETCHED, CopyCandidates, NamedPage, find_copies, spelling_key
from pipelines.indexing.publish import loss_refusal
from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.sketch import is_same, sketch_page
from pipelines.records import Page

SITE = "https://d.test"


def copies(same: bool | set[frozenset[str]], **canonical: str) -> dict[str, str]:
    """Return the copies among pages (a for /a), given the page that each names as canonical ("" for none)."""
    pages = [NamedPage(f"{SITE}/{name}", f"{SITE}/{to}" if to else None, name, True) for name, to in canonical.items()]

    def judge(one: str, other: str) -> bool:
        names = frozenset(url.rpartition("/")[2] for url in (one, other))
        return same if isinstance(same, bool) else names in same

    found = CopyCandidates.among(pages).copies(judge)
    return {url.rpartition("/")[2]: to.rpartition("/")[2] for url, to in found.items()}


def test_canonical_counts_only_if_fetched_with_the_same_text():
    assert copies(True, a="", copy="a", b="never", d="d") == {"copy": "a"}
    assert copies(False, a="", copy="a") == {}
    front = copies({frozenset(("index", "copy"))}, start="", one="start", two="start", index="", copy="index")
    assert front == {"copy": "index"}


def test_chains_end_at_the_last_url_and_cycles_at_the_best_one():
    assert copies(True, a="b", b="c", c="") == {"a": "c", "b": "c"}
    assert copies(True, aa="b", b="aa") == {"aa": "b"}
    assert copies(True, c1="c2", c2="c3", c3="c1") == {"c2": "c1", "c3": "c1"}
    assert copies(True, x="c2", c1="c2", c2="c1") == {"x": "c1", "c2": "c1"}


def test_better_spelling_of_a_url_is_the_page():
    def best(*urls: str, html: bool = True) -> set[str]:
        pages = [NamedPage(url, None, url, html or not url.endswith(".md")) for url in urls]
        found = CopyCandidates.among(pages).copies(lambda one, other: True)
        assert found.keys() | set(found.values()) == set(urls)
        return set(found.values())

    assert best(f"{SITE}/x/index.html", f"{SITE}/x/", f"{SITE}//x/", f"{SITE}/x//index.html") == {f"{SITE}/x/"}
    assert best(f"{SITE}/x.html", f"{SITE}/x") == {f"{SITE}/x"}
    assert best("http://d.test/x", f"{SITE}/x/") == {f"{SITE}/x/"}
    assert best(f"{SITE}/x.md", f"{SITE}/x/", f"{SITE}/x/index.html.md", html=False) == {f"{SITE}/x/"}
    assert best(f"{SITE}/default.aspx?p=1", f"{SITE}/?p=1") == {f"{SITE}/?p=1"}


def test_query_string_with_the_same_bytes_makes_no_second_page():
    pages = {"": "h", "index.html": "h", "index.html?x=1": "h", "?x=1": "h", "a": "a", "a?p=2": "b", "b?x=1": "h"}
    found = copies_by_bytes(pages)
    assert found == dict.fromkeys(["index.html", "index.html?x=1", "?x=1"], "")


def test_other_spelling_of_a_copy_with_its_text_is_a_copy_too():
    pages = {"x": "1", "x.html": "1", "x/index.html": "2", "x.md": "3", "new": "1"}
    assert copies_by_bytes(pages, x="new") == {"x": "new", "x.html": "new"}
    assert copies_by_bytes(pages | {"new": "4"}, x="new") == {"x.html": "x"}
    assert copies_by_bytes({"x/": "1", "x.html": "1"}, **{"x/": "x.html"}) == {"x/": "x.html"}  # as the site declares


def test_every_compared_pair_has_sketches():
    pages = [NamedPage(f"{SITE}/{url}", f"{SITE}/o" if url == "x" else None, bytes_, True)
             for url, bytes_ in {"x": "1", "x.html": "1", "x/index.html": "2", "o": "1", "p": "3"}.items()]  # fmt: skip
    candidates, compared = CopyCandidates.among(pages), set[str]()

    def judge(one: str, other: str) -> bool:
        if candidates.pages[one].content_hash == candidates.pages[other].content_hash:
            return True
        compared.update((one, other))
        return True

    assert set(candidates.copies(judge).values()) == {f"{SITE}/o"}
    assert compared and compared <= set(candidates.to_sketch())


@pytest.mark.parametrize("loop", [False, True], ids=["a chain", "a circle"])
def test_site_of_copies_takes_no_longer_than_its_pages(loop):
    """50,000 pages that name one another are compared once each: a walk from each of them would take almost forever."""
    count, compared = 50_000, 0

    def judge(one: str, other: str) -> bool:
        nonlocal compared
        compared += 1
        return True

    following = [*range(1, count), 0 if loop else None]
    chain = [NamedPage(f"{SITE}/{n:05}", to if to is None else f"{SITE}/{to:05}", "h", True)
             for n, to in enumerate(following)]  # fmt: skip
    found = CopyCandidates.among(chain).copies(judge)
    assert len(found) == count - 1 and set(found.values()) == {chain[0 if loop else -1].url}
    spelt = [NamedPage(f"{SITE}/x{'/' * n}", None, "h", True) for n in range(1_000)]
    assert set(CopyCandidates.among(spelt).copies(judge).values()) == {f"{SITE}/x"}
    assert compared < 2 * count


def copies_by_bytes(pages: dict[str, str], **canonical: str) -> dict[str, str]:
    """Return the copies among pages with these bytes, where only equal bytes are one text."""
    named = [NamedPage(f"{SITE}/{url}", f"{SITE}/{canonical[url]}" if url in canonical else None, bytes_, True)
             for url, bytes_ in pages.items()]  # fmt: skip
    candidates = CopyCandidates.among(named)
    found = candidates.copies(lambda one, other: len({candidates.pages[url].content_hash for url in (one, other)}) == 1)
    return {url.removeprefix(f"{SITE}/"): to.removeprefix(f"{SITE}/") for url, to in found.items()}


@pytest.mark.parametrize("other", ["/x?p=1", "/X", "/x/y", "/x.pdf", "/index/x", "/x-index.html"])
def test_other_urls_are_other_pages(other):
    assert spelling_key(f"{SITE}/x") != spelling_key(SITE + other)
    pages = [NamedPage(url, None, url, True) for url in (f"{SITE}/x", SITE + other)]
    assert CopyCandidates.among(pages).copies(lambda one, other: True) == {}


def sketch(body: str, kind: str = "text/html") -> str:
    return sketch_page(Page(f"{SITE}/a", body.encode(), kind))


def article(topic: str, more: str = "") -> str:
    text = f"To {topic} the server, open the console and choose {topic}. The setting {topic}.level decides how much."
    more_text = f"<h2 id=a{len(more)}>More</h2><p>{text}</p>"
    return f"<nav>{more}</nav><main><h1>{topic}</h1><p>{text} It says so from 1 to 9.</p>{more_text}"


LONG = " ".join(f"Word {n} of a long text that says something." for n in range(60))


def test_text_is_the_same_in_any_surroundings():
    assert is_same(sketch(article("install")), sketch(article("install", "<a href=b>Next</a>")))
    old, new = (f"<main><h1>T</h1><p>{LONG}</p><p>As of version {version}.</p></main>" for version in ("1.0", "2.0"))
    assert is_same(sketch(old), sketch(new))
    markdown = sketch(f"# T\n\n{LONG}\n\nAs of version 2.0.\n", "text/markdown")
    assert is_same(markdown, sketch(new))


def test_different_texts_are_not_the_same():
    assert not is_same(sketch(article("install")), sketch(article("upgrade")))
    assert not is_same(sketch("<main><h1>A</h1><p>One.</p>"), sketch("<main><h1>B</h1><p>One.</p>"))
    assert not is_same(sketch("<main><h1>A</h1><p>One.</p>"), sketch("<main><h1>A</h1><p>Two.</p>"))
    assert not is_same(
        sketch(f"<main><h1>A</h1><p>{LONG}</p>"), sketch(f"<main><h1>A</h1><p>{LONG[: len(LONG) // 2]}</p>")
    )


def test_run_must_not_lose_most_of_the_text():
    def refusal(before: int, after: int, most: float) -> str:
        return loss_refusal(before, after, most, "publish it")

    assert refusal(0, 0, 0.2) == refusal(100, 50, 0.2) == refusal(100, 120, 0.2) == ""
    said = refusal(1000, 400, 0.2)
    assert "60% of the text would be lost: 1,000 bytes become 400" in said and said.endswith("publish it")
    assert refusal(1000, 400, 0.7) == "" and refusal(1000, 0, 1) == ""


class StoredPages:
    """A store's pages by URL, and the sketches saved in it."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies, self.sketches = bodies, dict[str, str]()

    def page_names(self, collection: str) -> list[dict[str, Any]]:
        return [{"url": url, "canonical": None, "content_hash": body.hex(), "is_html": True}
                for url, body in self.bodies.items()]  # fmt: skip

    def page_sketches(self, collection: str, urls: list[str]) -> dict[str, str]:
        return {url: self.sketches[url] for url in urls if url in self.sketches}

    def page_bodies(self, collection: str, urls: list[str]) -> list[Page]:
        return [Page(url, self.bodies[url], "text/html") for url in urls]

    def save_sketches(self, collection: str, sketches: dict[str, str]) -> None:
        self.sketches |= sketches


def test_many_pages_are_compared_by_several_processes_with_a_message():
    """One of them cannot be read, and stays a separate page."""
    pairs = [(f"{SITE}/{n}", f"{SITE}/{n}/") for n in range(SKETCHED + 2)]
    bodies = {url: f"{article(f'step{one}')}<!-- {url} -->".encode() for one, pair in enumerate(pairs) for url in pair}
    bodies[pairs[0][0]] = b" "
    store, said = StoredPages(bodies), list[str]()
    for _ in range(2):
        with closing(Child()) as child:
            assert find_copies(store, "docs", child, said.append) == {other: url for url, other in pairs[1:]}  # type: ignore[arg-type]
    pages = len(bodies)
    assert said == [f"comparing {pages} pages that may be copies of others, {done} done"
                    for done in range(0, pages, SKETCHED)]  # fmt: skip
