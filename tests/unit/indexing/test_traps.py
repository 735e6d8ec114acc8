"""Link traps are detected by equal pages under one pattern that link to each other; no real page is skipped."""

import pytest

from pipelines.indexing.crawling.frontier.traps import LinkTraps, reduced

SITE = "https://d.test"


def noted(*pages: tuple[str, str], most: int = 3) -> LinkTraps:
    traps = LinkTraps(most)
    for path, text in pages:
        traps.note(SITE + path, text)
    return traps


@pytest.mark.parametrize(
    "form", ["/s/{}/guide", "/guide?sid={}", "/guide;jsessionid={}", "/guide?sid={}&t={}", "/cal/{}", "/{}"]
)
def test_equal_pages_under_one_pattern_are_a_trap(form: str) -> None:
    traps = noted(*((form.format(n, n), "same words") for n in range(4)))
    assert traps.holds(SITE + form.format("new", "new"), SITE + form.format(1, 1))
    assert sum(traps.left.values()) == 1 and SITE in next(iter(traps.left))


def test_path_that_grows_by_repetition_is_a_trap() -> None:
    traps = noted(*((f"/a{'/b' * n}/", "same words") for n in range(2, 7)))
    assert traps.holds(f"{SITE}/a{'/b' * 9}/", f"{SITE}/a{'/b' * 8}/")


def test_page_with_content_is_not_a_trap() -> None:
    traps = noted(*((f"/s/{n}/guide", "same words") for n in range(9)), ("/real", "other words"))
    assert not traps.holds(f"{SITE}/s/new/guide", f"{SITE}/real")
    assert not traps.holds(f"{SITE}/s/new/guide", "")  # a start page, or one in a sitemap
    assert not traps.holds(f"{SITE}/s/new/other", f"{SITE}/s/1/guide")


def test_folder_with_one_different_page_is_not_a_trap() -> None:
    stubs = [(f"/api/{n}", "no documentation") for n in range(9)]
    assert noted(*stubs).holds(f"{SITE}/api/x", f"{SITE}/api/1")
    assert not noted(*stubs, ("/api/real", "words")).holds(f"{SITE}/api/x", f"{SITE}/api/1")
    assert not noted(("/api/real", "words"), *stubs).holds(f"{SITE}/api/x", f"{SITE}/api/1")


def test_pages_without_words_are_not_a_trap() -> None:
    assert not noted(*((f"/app/{n}", "") for n in range(9))).holds(f"{SITE}/app/x", f"{SITE}/app/1")


def test_words_are_compared_without_parts_that_change_per_visit() -> None:
    one = reduced("<p>Visit 17 of <b>sid8f3a</b></p><script>var id = 'abc'</script><!-- 2026 --> since 2026-01-31")
    assert one == "Visit of since"


@pytest.mark.parametrize("text", ["<" * 200_000, "<!--" * 50_000, "<script>" * 20_000, "a" * 500_000])
def test_hostile_page_is_reduced_in_linear_time(text: str) -> None:
    assert len(reduced(text * 10)) <= len(text) * 10  # 2 million characters take minutes in quadratic time
