"""Provides the chat page in the session's browser, in its initial state for each test."""

from collections.abc import Iterator

import pytest
from kit.browser import Browser
from kit.chat import Site, renewed, run_site


@pytest.fixture(scope="session")
def running(chromium: Browser) -> Iterator[Site]:
    with run_site(chromium) as site:
        yield site


@pytest.fixture
def site(running: Site) -> Site:
    return renewed(running)
