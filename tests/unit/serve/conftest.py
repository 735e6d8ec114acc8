"""The service under test: its store, its engine, and its recorder."""

from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from kit.api import FakeEngine, MemoryRecorder
from kit.guarded import GuardedStore

from serve.routes import create_app


@pytest.fixture(scope="module")
def kept() -> SimpleNamespace:
    """The service's objects, created once per file like in the service. Each test gets them in a fresh state."""
    store = GuardedStore()
    return SimpleNamespace(store=store, engine=FakeEngine(store), recorder=MemoryRecorder())


@pytest.fixture(scope="module")
def app(kept: SimpleNamespace) -> FastAPI:
    """The service without its guard, built once per file, because that takes as long as many requests."""
    return create_app(kept.engine, kept.store, recorder=kept.recorder, observer=kept.recorder)


@pytest.fixture
def store(kept: SimpleNamespace) -> GuardedStore:
    kept.store.__init__()
    return kept.store


@pytest.fixture
def engine(kept: SimpleNamespace, store: GuardedStore) -> FakeEngine:
    kept.engine.__init__(store)
    return kept.engine


@pytest.fixture
def recorder(kept: SimpleNamespace) -> MemoryRecorder:
    kept.recorder.__init__()
    return kept.recorder
