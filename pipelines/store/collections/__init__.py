"""The collections of a database, copies of them, and the pages that an index holds."""

from pipelines.store.collections.catalog import Collections, NoSuchCollection
from pipelines.store.collections.copies import Copies, copy_name, is_copy
from pipelines.store.collections.documents import Documents, ListedPage

__all__ = ["Collections", "Copies", "Documents", "ListedPage", "NoSuchCollection", "copy_name", "is_copy"]
