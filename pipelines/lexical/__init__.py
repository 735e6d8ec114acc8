"""BM25 search over an index: terms, documents, queries, and the folder on each node.

It follows the revisions of an index and can always be rebuilt from the store. Knows no SQL and no vectors.
"""

from pipelines.lexical.index import (
    LexicalIndex,
    LexicalNotBuilt,
    Matches,
    lexical_folder,
    remove_lexical_folders,
)
from pipelines.lexical.terms import STOP_TERMS, name_parts, other_words, terms
