"""The store: pages, runs, indexes and chunks in Postgres + pgvector. The only package that speaks psycopg.

Statements live by name in the .sql files beside, tables in schema.sql. Every method is one transaction; those
that load staging tables may be repeated after any failure without storing anything twice. Knows no Ray, no HTTP
and no command line.
"""

from pipelines.store.connection import StoreUnavailable, UnusableDatabase, can_connect, clean
from pipelines.store.copies import Copies, copy_name, is_copy
from pipelines.store.evaluations import Evaluated, EvaluatedQuestion, Judgement
from pipelines.store.pages import READ_ATTEMPTS, Pages, PageToIndex
from pipelines.store.publish import (
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
from pipelines.store.questions import (
    SCOPES,
    Asked,
    BadKey,
    BadRating,
    Key,
    KeyNameTaken,
    NoSuchKey,
    QuestionRow,
    Taken,
    Turn,
    key_hash,
)
from pipelines.store.search import ChangesPruned, NoLiveIndex, NoSuchIndex, Reading
from pipelines.store.staging import StagedPage, Staging
from pipelines.store.transfer import NotADump, dump, restore


class Store(Pages, Staging, Reading, Copies, Asked, Evaluated):
    """Pages, staged chunks, indexes, what was asked and measured, of one database. Its constructor is Connected's."""


__all__ = [
    "BUILD_ROWS_PER_S",
    "INSERT_ROWS_PER_S",
    "READ_ATTEMPTS",
    "SCOPES",
    "Asked",
    "BadKey",
    "BadRating",
    "BuildResources",
    "ChangesPruned",
    "CollectionBusy",
    "Evaluated",
    "EvaluatedQuestion",
    "Judgement",
    "Key",
    "KeyNameTaken",
    "LostCollection",
    "NoLiveIndex",
    "NoSuchIndex",
    "NoSuchKey",
    "NotADump",
    "PageToIndex",
    "Publication",
    "QuestionRow",
    "RunLock",
    "StagedPage",
    "Store",
    "StoreUnavailable",
    "Taken",
    "Turn",
    "UnusableDatabase",
    "VectorsMissing",
    "can_connect",
    "choose_vector_type",
    "clean",
    "copy_name",
    "dump",
    "is_copy",
    "key_hash",
    "restore",
]
