"""The service under test: its store, its engine, and what it records."""

from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from kit.api import FakeEngine, MemoryRecorder
from kit.guarded import GuardedStore

from serve.routes import create_app


@pytest.fixture(scope="module")
def kept() -> SimpleNamespace:
    """What the service stands on, one of each a file, as the service is; each test gets them as if they were new."""
    store = GuardedStore()
    return SimpleNamespace(store=store, engine=FakeEngine(store), recorder=MemoryRecorder())


@pytest.fixture(scope="module")
def app(kept: SimpleNamespace) -> FastAPI:
    """The service without its guard, made once a file: it takes as long as many requests."""
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
