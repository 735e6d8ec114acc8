"""Runs each file of unit tests as on a machine that has just started."""

from collections.abc import Iterator

import pytest
from kit.young_clock import just_started


@pytest.fixture(scope="module", autouse=True)
def machine_that_has_just_started() -> Iterator[None]:
    with just_started():
        yield
