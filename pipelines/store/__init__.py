"""The store: pages, runs, indexes and chunks in Postgres + pgvector. The only package that speaks psycopg.

Statements live by name in the .sql files beside, tables in schema.sql. Every method is one transaction; those
that load staging tables may be repeated after any failure without storing anything twice. Knows no Ray, no HTTP
and no command line.
"""

from pipelines.store.connection import StoreUnavailable, UnusableDatabase, can_connect
from pipelines.store.copies import Copies, copy_name, is_copy
from pipelines.store.evaluations import EvaluatedQuestion, Evaluations, JudgementRow
from pipelines.store.keys import SCOPES, BadKey, Key, KeyNameTaken, Keys, NoSuchKey, TokenGrant, key_hash
from pipelines.store.migrations import MigrationFailed, Schema
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
from pipelines.store.questions import BadRating, QuestionRow, Questions, Turn
from pipelines.store.search import ChangesPruned, Indexes, NoLiveIndex, NoSuchIndex, SearchResult
from pipelines.store.staging import StagedPage, Staging
from pipelines.store.transfer import NotADump, dump, restore


class Store(Schema, Pages, Staging, Indexes, Copies, Questions, Keys, Evaluations):
    """One database with all that Raydex stores. Its constructor is Database's."""


__all__ = [
    "BUILD_ROWS_PER_S",
    "INSERT_ROWS_PER_S",
    "READ_ATTEMPTS",
    "SCOPES",
    "BadKey",
    "BadRating",
    "BuildResources",
    "ChangesPruned",
    "CollectionBusy",
    "EvaluatedQuestion",
    "JudgementRow",
    "Key",
    "KeyNameTaken",
    "LostCollection",
    "MigrationFailed",
    "NoLiveIndex",
    "NoSuchIndex",
    "NoSuchKey",
    "NotADump",
    "PageToIndex",
    "Publication",
    "QuestionRow",
    "RunLock",
    "Schema",
    "SearchResult",
    "StagedPage",
    "Store",
    "StoreUnavailable",
    "TokenGrant",
    "Turn",
    "UnusableDatabase",
    "VectorsMissing",
    "can_connect",
    "choose_vector_type",
    "copy_name",
    "dump",
    "is_copy",
    "key_hash",
    "restore",
]
