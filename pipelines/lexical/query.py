"""Builds the BM25 query of a question and its filters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import tantivy
from tantivy import Occur, Query

from pipelines.lexical.documents import MARKER
from pipelines.lexical.terms import language_of, question_terms
from pipelines.records import Filters
from pipelines.text.cleaning import clean_for_storage

# From a question with more terms, only the rarest are searched: frequent terms cost most and help least.
MAX_TERMS = 32
# Maximum words of a question that are read; limits the work for a pasted file.
MAX_WORDS = 2_000


def _rarity(texts: int, frequency: int) -> float:
    """Return the inverse document frequency of BM25."""
    return math.log(1 + (texts - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class QueryBuilder:
    """Builds queries against one commit; `boosts` weights the fields, `texts` counts the texts in each language.

    All counts match tantivy's scores: deleted chunks are included until their segment is merged.
    """

    schema: tantivy.Schema
    searcher: tantivy.Searcher
    boosts: Mapping[str, float]
    texts: Mapping[str, int]

    def build(self, terms: Sequence[str], filters: Filters) -> Query | None:
        """Return the query: any of `terms` in any field, in chunks that pass `filters`. None without terms.

        The terms are one flat union, which tantivy prunes best.
        """
        wanted: list[tuple[Occur, Query]] = [
            (Occur.Should, Query.boost_query(self._has_term(field, term), boost * weight))
            for term, weight in zip(terms, map(self._weight, terms), strict=True)
            for field, boost in self.boosts.items()
        ]
        if not wanted:
            return None
        scored = Query.boolean_query(wanted)
        kept = [(Occur.Must, Query.const_score_query(query, 0.0)) for query in self._conditions(filters)]
        return Query.boolean_query([(Occur.Must, scored), *kept]) if kept else scored

    def full_score(self, terms: Sequence[str]) -> float:
        """Return the BM25 score of a text of average length that has each of `terms` once."""
        texts = self._documents
        return sum(_rarity(texts, self.searcher.doc_freq("text", term)) * self._weight(term) for term in terms)

    @property
    def _documents(self) -> int:
        """The number of documents in tantivy's scores, including markers and deleted ones that are not merged yet."""
        return sum(self.texts.values()) + self.searcher.doc_freq("chunk_id", MARKER)

    def _weight(self, term: str) -> float:
        """Return a term's IDF within its language, divided by its overall IDF.

        Without this factor, the few pages in another language would win whenever they share a word with the question.
        """
        own = self.texts[language_of(term)]
        if not own or len(self.texts) == 1:
            return 1.0
        frequency = self.searcher.doc_freq("text", term)
        return _rarity(max(own, frequency), frequency) / _rarity(self._documents, frequency)

    def terms(self, question: str, language: str = "") -> Sequence[str]:
        """Return a question's distinct terms for pages in `language`; for a very long one, the rarest that occur."""
        words = " ".join(question.split(maxsplit=MAX_WORDS)[:MAX_WORDS])
        distinct = question_terms(words, language)
        if len(distinct) <= MAX_TERMS:
            return distinct
        frequency = {term: self.searcher.doc_freq("text", term) for term in distinct}
        return sorted((term for term in distinct if frequency[term]), key=frequency.__getitem__)[:MAX_TERMS]

    def fitting(self, searched: Sequence[Sequence[str]]) -> Sequence[str]:
        """Return the terms for the language that fits a question best: fewest missing terms, then most terms."""
        if len(searched) == 1:
            return searched[0]
        return min(searched, key=lambda terms: (sum(not self.searcher.doc_freq("text", t) for t in terms), -len(terms)))

    def _has_term(self, field: str, term: str) -> Query:
        return Query.term_query(self.schema, field, term, index_option="freq")

    def _conditions(self, filters: Filters) -> Iterator[Query]:
        if filters.tags:
            yield Query.term_set_query(self.schema, "tag", [clean_for_storage(tag) for tag in filters.tags])
        for field, value in (("version", filters.version), ("language", filters.language)):
            if value is not None:
                yield Query.term_query(self.schema, field, clean_for_storage(value), index_option="basic")
        if filters.url_prefix:
            yield self._has_prefix(clean_for_storage(filters.url_prefix))

    def _has_prefix(self, prefix: str) -> Query:
        """Match chunks whose URL starts with `prefix`: a folder is one term; any other prefix expands to its terms."""
        if prefix.endswith("/"):
            return Query.term_query(self.schema, "address", prefix, index_option="basic")
        addresses = [term for term, _ in self.searcher.terms_with_prefix("address", prefix)]
        return Query.term_set_query(self.schema, "address", addresses)
