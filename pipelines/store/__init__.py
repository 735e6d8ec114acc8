"""The store: pages, runs, indexes and chunks in Postgres + pgvector. The only package that speaks psycopg.

Statements live by name in the .sql files beside, tables in schema.sql. Every method is one transaction; those
that load staging tables may be repeated after any failure without storing anything twice. Knows no Ray, no HTTP
and no command line.
"""

from pipelines.store.connection import StoreUnavailable, UnusableDatabase, can_connect, clean
from pipelines.store.pages import READ_ATTEMPTS, Pages, PageToIndex
from pipelines.store.publishing import (
    BUILD_ROWS_PER_S,
    INSERT_ROWS_PER_S,
    BuildResources,
    CollectionBusy,
    LostCollection,
    Publication,
    RunLock,
    VectorsMissing,
    choose_vector_type,
)
from pipelines.store.reading import ChangesPruned, NoLiveIndex, NoSuchIndex, Reading
from pipelines.store.staging import StagedPage, Staging
from pipelines.store.transfer import NotADump, dump, restore


class Store(Pages, Staging, Reading):
    """Pages, staged chunks and indexes of one database. See Connected for its constructor."""


__all__ = [
    "BUILD_ROWS_PER_S",
    "INSERT_ROWS_PER_S",
    "READ_ATTEMPTS",
    "BuildResources",
    "ChangesPruned",
    "CollectionBusy",
    "LostCollection",
    "NoLiveIndex",
    "NoSuchIndex",
    "NotADump",
    "PageToIndex",
    "Publication",
    "RunLock",
    "StagedPage",
    "Store",
    "StoreUnavailable",
    "UnusableDatabase",
    "VectorsMissing",
    "can_connect",
    "choose_vector_type",
    "clean",
    "dump",
    "restore",
]
