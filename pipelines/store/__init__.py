"""Stores everything in Postgres with pgvector: pages, indexes, questions, evaluations.

This is the only package that uses psycopg. Named statements are in the .sql files next to the code, tables in
migrations/. Every method is one transaction. Loading staging tables may be repeated after any failure and stores
nothing twice.
"""

from pipelines.store.clicks import Clicks, OpenedSource
from pipelines.store.collections.announcements import Announced, Announcements
from pipelines.store.collections.catalog import Catalog, NoSuchCollection, copy_name, is_copy
from pipelines.store.collections.documents import ListedPage
from pipelines.store.collections.freshness import Freshness
from pipelines.store.collections.outline import Outline, Outlines, Place, SectionStart
from pipelines.store.collections.trials import ModelTrial, ModelTrials
from pipelines.store.collections.verified import (
    NoSuchAnswer,
    PinnedSection,
    VerifiedAnswer,
    VerifiedAnswers,
    VerifiedMark,
)
from pipelines.store.database.address import (
    DATABASE_PATIENCE_S,
    URL_FORM,
    BadDatabaseUrl,
    can_connect,
    check_url,
    wait_for_database,
)
from pipelines.store.database.errors import DatabaseFull, StoreUnavailable, UnusableDatabase
from pipelines.store.evaluations import EvaluatedQuestion, Evaluations, Judgement
from pipelines.store.indexes import ChangesPruned, Deleting, Fate, Indexes, NoLiveIndex, NoSuchIndex, SearchResult
from pipelines.store.insights.asked import AskedQuestion, AskedQuestions
from pipelines.store.keys import (
    ASK,
    CHANGES,
    KEY_PREFIX,
    PUBLISHABLE_PREFIX,
    SCOPES,
    BadKey,
    Key,
    KeyNameTaken,
    Keys,
    NoSuchKey,
    TokenGrant,
    key_hash,
)
from pipelines.store.lexical_archives import LexicalArchive, LexicalArchives
from pipelines.store.migrations.migrate import MigrationFailed, Schema
from pipelines.store.migrations.owner import give_database
from pipelines.store.page_states import READ_ATTEMPTS, Pages, PageToIndex
from pipelines.store.publish import (
    BuildResources,
    NoSuchRevision,
    Publication,
    VectorsMissing,
    build_index,
    choose_vector_type,
    promote_index,
    publish_in_place,
    return_to_revision,
    returnable,
)
from pipelines.store.questions import BadRating, NoSuchQuestion, Questions, RecordedQuestion, Turn
from pipelines.store.runs import CollectionBusy, LostCollection, RunLock, run_began
from pipelines.store.staging import StagedPage, Staging
from pipelines.store.transfer import DumpNotWritten, NotADump, dump, read_manifest, restore
from pipelines.store.upkeep import Upkeep


class Store(
    Schema, Catalog, Pages, Staging, Indexes, Outlines, Questions, Clicks, Keys, Evaluations, VerifiedAnswers,
    ModelTrials, AskedQuestions, Upkeep, Announcements, LexicalArchives,
):  # fmt: skip
    """One database with everything that Raydex stores. Its constructor is Database's."""
