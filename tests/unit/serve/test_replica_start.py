"""A new replica gets questions once its collections are loaded, but it does not wait forever."""

import threading
from typing import Any, cast

import pytest

from serve.app import load_first


class Loading:
    """A retriever that finishes loading when allowed."""

    def __init__(self) -> None:
        self.may, self.has = threading.Event(), threading.Event()

    def warm(self) -> None:
        self.may.wait(60)
        self.has.set()


@pytest.fixture
def retriever() -> Loading:
    return Loading()


def test_replica_is_ready_once_its_collections_are_loaded(retriever: Loading) -> None:
    threading.Timer(0.3, retriever.may.set).start()
    load_first(cast(Any, retriever))
    assert retriever.has.is_set()


def test_slow_collections_are_loaded_while_questions_are_served(retriever: Loading) -> None:
    load_first(cast(Any, retriever), patience_s=0.05)
    assert not retriever.has.is_set()
    retriever.may.set()
    assert retriever.has.wait(60)
