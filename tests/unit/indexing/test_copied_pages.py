"""Pages with one text are one page; pages with texts of their own are not, whatever they name as canonical."""

import pytest

from pipelines.indexing.copies import NamedPage, copies_of, may_be_copies, plain_url
from pipelines.indexing.publish import loss_refusal
from pipelines.indexing.reading.sketch import is_same, sketch_page
from pipelines.records import Page

SITE = "https://d.test"


def copies(same: bool | set[frozenset[str]], **canonical: str) -> dict[str, str]:
    """Return the copies among pages (a for /a) with what they name as canonical ("" for nothing)."""
    pages = [NamedPage(f"{SITE}/{name}", f"{SITE}/{to}" if to else None, name, True) for name, to in canonical.items()]

    def judge(one: str, other: str) -> bool:
        names = frozenset(url.rpartition("/")[2] for url in (one, other))
        return same if isinstance(same, bool) else names in same

    found = copies_of(pages, judge)
    return {url.rpartition("/")[2]: to.rpartition("/")[2] for url, to in found.items()}


def test_a_canonical_counts_only_if_it_was_fetched_and_has_the_same_text():
    assert copies(True, a="", copy="a", b="never", d="d") == {"copy": "a"}
    assert copies(False, a="", copy="a") == {}
    front = copies({frozenset(("index", "copy"))}, start="", one="start", two="start", index="", copy="index")
    assert front == {"copy": "index"}


def test_chains_end_at_their_end_and_circles_at_their_best_url():
    assert copies(True, a="b", b="c", c="") == {"a": "c", "b": "c"}
    assert copies(True, aa="b", b="aa") == {"aa": "b"}
    assert copies(True, c1="c2", c2="c3", c3="c1") == {"c2": "c1", "c3": "c1"}
    assert copies(True, x="c2", c1="c2", c2="c1") == {"x": "c1", "c2": "c1"}


def test_the_better_spelling_is_the_page():
    def best(*urls: str, html: bool = True) -> set[str]:
        pages = [NamedPage(url, None, url, html or not url.endswith(".md")) for url in urls]
        found = copies_of(pages, lambda one, other: True)
        assert found.keys() | set(found.values()) == set(urls)
        return set(found.values())

    assert best(f"{SITE}/x/index.html", f"{SITE}/x/", f"{SITE}//x/", f"{SITE}/x//index.html") == {f"{SITE}/x/"}
    assert best(f"{SITE}/x.html", f"{SITE}/x") == {f"{SITE}/x"}
    assert best("http://d.test/x", f"{SITE}/x/") == {f"{SITE}/x/"}
    assert best(f"{SITE}/x.md", f"{SITE}/x/", f"{SITE}/x/index.html.md", html=False) == {f"{SITE}/x/"}
    assert best(f"{SITE}/default.aspx?p=1", f"{SITE}/?p=1") == {f"{SITE}/?p=1"}


@pytest.mark.parametrize("other", ["/x?p=1", "/X", "/x/y", "/x.pdf", "/index/x", "/x-index.html"])
def test_other_urls_are_other_pages(other):
    assert plain_url(f"{SITE}/x") != plain_url(SITE + other)
    assert may_be_copies([NamedPage(url, None, url, True) for url in (f"{SITE}/x", SITE + other)]) == []


def sketch(body: str, kind: str = "text/html") -> str:
    return sketch_page(Page(f"{SITE}/a", body.encode(), kind))


def article(topic: str, more: str = "") -> str:
    text = f"To {topic} the server, open the console and choose {topic}. The setting {topic}.level decides how much."
    more_text = f"<h2 id=a{len(more)}>More</h2><p>{text}</p>"
    return f"<nav>{more}</nav><main><h1>{topic}</h1><p>{text} It says so from 1 to 9.</p>{more_text}"


LONG = " ".join(f"Word {n} of a long text that says something." for n in range(60))


def test_a_text_is_the_same_whatever_stands_around_it():
    assert is_same(sketch(article("install")), sketch(article("install", "<a href=b>Next</a>")))
    old, new = (f"<main><h1>T</h1><p>{LONG}</p><p>As of version {version}.</p></main>" for version in ("1.0", "2.0"))
    assert is_same(sketch(old), sketch(new))
    markdown = sketch(f"# T\n\n{LONG}\n\nAs of version 2.0.\n", "text/markdown")
    assert is_same(markdown, sketch(new))


def test_texts_that_differ_are_not_the_same():
    assert not is_same(sketch(article("install")), sketch(article("upgrade")))
    assert not is_same(sketch("<main><h1>A</h1><p>One.</p>"), sketch("<main><h1>B</h1><p>One.</p>"))
    assert not is_same(sketch("<main><h1>A</h1><p>One.</p>"), sketch("<main><h1>A</h1><p>Two.</p>"))
    assert not is_same(
        sketch(f"<main><h1>A</h1><p>{LONG}</p>"), sketch(f"<main><h1>A</h1><p>{LONG[: len(LONG) // 2]}</p>")
    )


def test_a_run_may_not_lose_most_of_the_text():
    assert loss_refusal(0, 0, 0.2) == loss_refusal(100, 50, 0.2) == loss_refusal(100, 120, 0.2) == ""
    assert "60% of the text would be lost: 1,000 characters become 400" in loss_refusal(1000, 400, 0.2)
    assert loss_refusal(1000, 400, 0.7) == "" and loss_refusal(1000, 0, 1) == ""
