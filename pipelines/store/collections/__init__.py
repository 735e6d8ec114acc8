"""Collections, their copies, the pages that an index holds and what it is about, verified answers."""

from pipelines.store.collections.catalog import Collections, NoSuchCollection, is_copy
from pipelines.store.collections.copies import Copies, copy_name
from pipelines.store.collections.documents import Documents, ListedPage
from pipelines.store.collections.outline import Outline, Outlines, Place, SectionStart
