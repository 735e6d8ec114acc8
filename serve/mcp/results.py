"""The results of the tools: records with a schema, and as text that fits into a context window."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel

from pipelines.answering.hits import place, snippet
from pipelines.answering.retrieval.search import Retrieval
from pipelines.llm.tokens import estimate
from pipelines.records import RESULTS, SOME, Answer, AnswerForm, Confidence, Hit, WrittenBy
from pipelines.text.counts import counted
from serve.mcp.quoting import CUT, NOTICE, clean, cut, quote, quote_answer

# In tokens of `estimate`, which counts about a third more than current models. Claude Code warns about results above
# 10,000 tokens, and several results must fit into a context window.
SEARCH_TOKENS, ANSWER_TOKENS = 4_000, 4_000
MOST_SECTIONS = 10  # of a search; more would fill a context window with irrelevant text
SNIPPET_CHARACTERS = 200  # maximum length of a source's snippet

Cleaned = Annotated[str, AfterValidator(clean)]
Snippet = Annotated[Cleaned, AfterValidator(partial(snippet, length=SNIPPET_CHARACTERS))]


class ToolResult(BaseModel):
    """The result of a tool."""

    def to_text(self) -> str:
        """Return the result as text for an agent."""
        raise NotImplementedError


class FoundSection(BaseModel):
    """A found section: its source (`url#anchor`), its page and headings, its text as Markdown, whether that is cut.

    A section that the caller has `seen` comes without its text.
    """

    n: int
    title: str
    source: str
    text: str
    cut: bool
    seen: bool
    version: str | None

    @classmethod
    def of(cls, n: int, hit: Hit, *, seen: bool) -> Self:
        """Return the section of a hit, with all of its text cut."""
        title, source = clean(place(hit)), clean(hit.source)
        return cls(n=n, title=title, source=source, text=CUT, cut=not seen, seen=seen, version=hit.version)

    def to_text(self) -> str:
        if self.seen:
            return f"{self.n}.\n{quote('(you have it: its source or page is in `seen`)', self.source, self.title)}"
        more = f'\n(cut: `read_page(url="{self.source}")` has the whole section)' if self.cut else ""
        return f"{self.n}.\n{quote(self.text, self.source, self.title)}{more}"


class FoundSections(ToolResult):
    """The sections that search_docs found, best first, in one collection."""

    collection: str
    notice: str = NOTICE
    sections: list[FoundSection]

    @classmethod
    def of(cls, retrieval: Retrieval, most: int = MOST_SECTIONS, seen: Collection[str] = ()) -> Self:
        """Return up to `most` sections of the hits; their texts share the rest of SEARCH_TOKENS after their frames.

        A section whose source or URL is in `seen` has no text.
        """
        parts = by_section(retrieval.hits)[:most]
        known = [not {part[0].source, part[0].url, *part[0].sources}.isdisjoint(seen) for part in parts]
        sections = [FoundSection.of(n, part[0], seen=known[n - 1]) for n, part in enumerate(parts, 1)]
        found = cls(collection=retrieval.index.collection, sections=sections)
        each = (SEARCH_TOKENS - estimate(found.to_text())) // max(known.count(False), 1)
        for section, part in zip(found.sections, parts, strict=True):
            text, gaps = join_hits(part)
            shown, was_cut = ("", False) if section.seen else cut(clean(text), each)
            section.text, section.cut = shown, was_cut or (gaps and not section.seen)
        return found

    def to_text(self) -> str:
        if not self.sections:
            return f"Nothing was found in the collection {self.collection!r}: try other words, or leave out `version`."
        count = f"{counted(len(self.sections), 'section')} of {self.collection!r}"
        found = "\n\n".join(section.to_text() for section in self.sections)
        return f"{count}, best first. {self.notice}\n\n{found}\n\nRead on with `read_page(url=<source>)`."


def by_section(hits: Iterable[Hit]) -> list[list[Hit]]:
    """Return the hits of each section, in the order of the first hits."""
    parts: dict[tuple[str, Sequence[str]], list[Hit]] = {}
    for hit in hits:
        parts.setdefault((hit.source, hit.headings), []).append(hit)
    return list(parts.values())


def join_hits(part: Sequence[Hit]) -> tuple[str, bool]:
    """Return the text of a section's hits without repetitions, and whether it may have gaps."""
    texts = [part[0].passage]
    for hit in part[1:]:
        known = {line.strip() for text in texts for line in text.split("\n")}
        if any(line.strip() not in known for line in hit.text.split("\n")):
            texts.append(hit.text)
    return f"\n\n{CUT}\n\n".join(texts), len(texts) > 1


class CitedSource(BaseModel):
    """The source of `[n]` in an answer, and whether it supports the claim that cites it."""

    n: int
    title: Cleaned
    source: Cleaned
    snippet: Snippet
    supported: bool
    checked: str
    changed: str


class CitedAnswer(ToolResult):
    """The answer of ask_docs with its sources.

    `known` is false if the documentation does not answer; `form` is `results` if no section certainly answers and
    `answer` shows the best matches. `written_by` is `person`, `model`, or `quotes` for an answer that quotes the pages;
    `degraded` names the missing parts.
    """

    id: str
    conversation: str
    collection: str
    answer: str
    form: AnswerForm
    known: bool
    confidence: Confidence
    written_by: WrittenBy
    degraded: list[str]
    notice: str = NOTICE
    sources: list[CitedSource]

    @classmethod
    def of(cls, answer: Answer, conversation: str) -> Self:
        same = ("id", "collection", "form", "known", "confidence", "written_by")
        return cls(
            **{name: getattr(answer, name) for name in same},
            conversation=conversation,
            answer=cut(clean(answer.text), ANSWER_TOKENS)[0],
            degraded=list(answer.degraded),
            sources=[CitedSource.model_validate(one, from_attributes=True) for one in answer.citations],
        )

    def to_text(self) -> str:
        if not self.sources:
            return f"{quote_answer(self.answer)}\n\n{self._judged()}"
        weak = " (weak support)"
        sources = "\n".join(
            f"[{one.n}] {one.title}{'' if one.supported or not self.known else weak}\n    {one.source}"
            for one in self.sources
        )
        follow = f'Follow-up: `ask_docs(question=…, conversation="{self.conversation}")`.'
        answer = quote_answer(f"{self.answer}\n\nSources:\n{sources}")
        told = f"{self._judged()} {self.notice} {follow}".lstrip()
        return f"{answer}\n\n{told}"

    def _judged(self) -> str:
        """Return in words how reliable the answer is."""
        without = f" Made without: {', '.join(self.degraded)}." if self.degraded else ""
        if not self.known:
            return f"The documentation does not answer this for certain.{without}"
        person = "Answer written by a person. " if self.written_by == "person" else ""
        as_of = min((one.checked for one in self.sources if one.checked), default="")
        checked = f" Sources checked: {as_of}." if as_of else ""
        if self.form == RESULTS:
            return f"These are search results: no section certainly answers.{checked}{without}"
        relied = "" if self.confidence == SOME else f"Confidence: {self.confidence}."  # "some" tells nothing
        return f"{person}{relied}{checked}{without}".strip()


class OutlineEntry(BaseModel):
    """A section of a page: its depth, its heading, its anchor ("" if it has none)."""

    level: int
    heading: str
    anchor: str

    def to_text(self) -> str:
        return f"{'  ' * (self.level - 1)}- {self.heading}{f' #{self.anchor}' if self.anchor else ''}"


class PagePart(ToolResult):
    """A page, or a part of one: `text` is Markdown, in which `{#anchor}` after a heading is the section's anchor.

    `outline` lists the sections of a page that is too long for one part; `section` is the requested anchor or heading.
    """

    url: str
    title: str
    collection: str
    section: str
    part: int
    parts: int
    outline: list[OutlineEntry]
    notice: str = NOTICE
    text: str

    @property
    def source(self) -> str:
        """The page's URL, with the section's anchor."""
        return f"{self.url}#{self.section}" if self.section else self.url

    def to_text(self) -> str:
        place = f", part {self.part} of {self.parts}" if self.parts > 1 else ""
        outline = "Sections:\n" + "\n".join(one.to_text() for one in self.outline) + "\n\n" if self.outline else ""
        head = f"{self.source} (collection {self.collection!r}{place})\n{self.notice}"
        return f"{head}\n\n{quote(f'{outline}{self.text}', self.source, self.title)}{self._more()}"

    def _more(self) -> str:
        if self.part >= self.parts:
            return ""
        asked = f'url="{self.url}"' + (f', section="{self.section}"' if self.section else "")
        one = "" if self.section else f', or one section: `read_page(url="{self.url}", section=<anchor>)`'
        return f"\n\nThe page continues: `read_page({asked}, part={self.part + 1})`{one}."


class CollectionInfo(BaseModel):
    """A collection: its title, the common URL of its pages, their versions (newest first), languages, and number.

    `default` marks the collection used if none is named; one that is not `indexed` can't be asked yet.
    """

    name: str
    title: str
    default: bool
    indexed: bool
    url: str
    pages: int
    sections: int
    versions: list[str]
    languages: list[str]
    published: str | None

    def to_text(self) -> str:
        title = f": {self.title}" if self.title and self.title != self.name else ""
        name = f"- {self.name}{' (default)' if self.default else ''}{title}"
        if not self.indexed:
            return f"{name}; nothing is indexed in it yet"
        facts = [
            f"{counted(self.pages, 'page')} of {self.url or 'several sites'}",
            f"indexed {(self.published or '')[:10]}",
        ]
        facts += [f"versions {', '.join(self.versions)}"] if self.versions else []
        facts += [f"languages {', '.join(self.languages)}"] if self.languages else []
        return "; ".join([name, *facts])


class CollectionList(ToolResult):
    """The collections that can be searched."""

    collections: list[CollectionInfo]

    def to_text(self) -> str:
        if not self.collections:
            return "Nothing is indexed yet: `raydex index URL` does it."
        return "\n".join(one.to_text() for one in self.collections)
