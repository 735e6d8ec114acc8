"""The values that flow through Raydex: pages, sections, chunks, indexes, hits, answers.

They are plain frozen dataclasses, and the hashes that identify them. This package knows no database, no HTTP and no
Ray.
"""

from pipelines.records.answer import (
    ANSWER,
    ATTRIBUTED,
    DENIED,
    FINISHED,
    FULL,
    HIGH,
    LOW,
    MODEL,
    NOWHERE,
    PERSON,
    QUOTED,
    RESULTS,
    SOME,
    SUMMARY,
    VERIFIED,
    WITHOUT_MODEL,
    WRITTEN,
    Answer,
    AnswerForm,
    Citation,
    CitedBy,
    Claims,
    Confidence,
    Exchange,
    Form,
    Message,
    Reason,
    Role,
    Route,
    ToolCall,
    Usage,
    WrittenBy,
    written_by,
)
from pipelines.records.documents import (
    SECTIONING_VERSION,
    Page,
    content_hash,
    digest,
)
from pipelines.records.indexes import Chunk, ChunkUnit, EmbeddingModel, Filters, Hit, Index, IndexSettings, VectorType
