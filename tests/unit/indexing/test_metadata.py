"""Tags and versions come from a page's URL; a changed rule changes the hash that the index stores."""

import pytest

from pipelines.indexing.chunking.url_rules import InvalidUrlRule, UrlRules

RULES = UrlRules({"/serve/": "serve", "/api/": "api", "/serve/x": "serve"}, r"/en/([^/]+)/")


@pytest.mark.parametrize(
    ("url", "tags", "version"),
    [("https://x/en/2.1/serve/x/api/", ("serve", "api"), "2.1"), ("https://x/other/", (), None)],
)
def test_url_gets_each_matching_tag_once_and_the_first_matching_version(url, tags, version) -> None:
    assert (RULES.tags_of(url), RULES.version_of(url)) == (tags, version)


def test_changed_rule_changes_the_digest() -> None:
    assert RULES.digest == UrlRules(dict(RULES.tags), RULES.version).digest
    assert len({RULES.digest, UrlRules({}, RULES.version).digest, UrlRules(RULES.tags, None).digest}) == 3


@pytest.mark.parametrize("rules", [({"(": "x"}, None), ({}, "("), ({}, "no group")])
def test_invalid_pattern_is_an_error(rules: tuple[dict[str, str], str | None]) -> None:
    with pytest.raises(InvalidUrlRule):
        UrlRules(*rules)
