"""The service under test: its store, its engine, and what it records. A test that is a coroutine is run."""

import asyncio
import inspect
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from kit.api import FakeEngine, MemoryRecorder
from kit.guarded import GuardedStore

from serve.routes import create_app


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    names = inspect.signature(pyfuncitem.function).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="module")
def kept() -> SimpleNamespace:
    store = GuardedStore()
    return SimpleNamespace(store=store, engine=FakeEngine(store), recorder=MemoryRecorder())


@pytest.fixture(scope="module")
def app(kept: SimpleNamespace) -> FastAPI:
    """The service without its guard, made once a file: it takes as long as many requests."""
    return create_app(kept.engine, kept.store, recorder=kept.recorder, observer=kept.recorder)


@pytest.fixture
def store(kept: SimpleNamespace) -> GuardedStore:
    """What the service stands on has forgotten the test before."""
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
