"""A site is named by the common part of its page titles."""

import pytest

from pipelines.indexing.site_name import shared_name


@pytest.mark.parametrize(
    ("titles", "name"),
    [
        ([f"Topic {n} — Acme 3.2 documentation" for n in range(9)], "Acme 3.2 documentation"),
        ([f"Topic {n} | Acme documentation | Acme" for n in range(9)], "Acme documentation"),
        ([f"Acme: Documentation: 15: Topic {n}" for n in range(9)], "Acme Documentation 15"),
        ([f"Topic {n} - Acme" for n in range(7)] + ["Acme", "Acme", "Search"], "Acme"),
        ([f"New in {n} — Release notes — Acme" for n in range(5)] + ["a — Acme", "b — Acme", "c — Acme"], "Acme"),
        ([f"Topic {n}" for n in range(9)], ""),
        ([f"Topic {n}: how to" for n in range(2)], ""),
        (["Acme"] * 9, ""),
        (["", " ", "—"], ""),
        ([], ""),
    ],
)
def test_site_name_is_the_part_shared_by_most_titles(titles: list[str], name: str) -> None:
    assert shared_name(titles) == name
