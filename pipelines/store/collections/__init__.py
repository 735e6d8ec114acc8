"""Collections, their copies and pages, what they are about, verified answers, announced changes."""

from pipelines.store.collections.announcements import Announced, Announcements
from pipelines.store.collections.catalog import Collections, NoSuchCollection, is_copy
from pipelines.store.collections.copies import Copies, copy_name
from pipelines.store.collections.documents import Documents, ListedPage
from pipelines.store.collections.outline import Outline, Outlines, Place, SectionStart
