"""The collections of a database, and copies of them."""

from pipelines.store.collections.catalog import Collections, NoSuchCollection
from pipelines.store.collections.copies import Copies, copy_name, is_copy

__all__ = ["Collections", "Copies", "NoSuchCollection", "copy_name", "is_copy"]
