"""Shows an answer's Markdown in a terminal with rich; a table too wide for columns becomes lines."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    Markdown,
    MarkdownContext,
    MarkdownElement,
    TableBodyElement,
    TableElement,
    TableHeaderElement,
    TableRowElement,
)
from rich.text import Text

from pipelines.page.parser import keep_short_rows

LEAST_COLUMN = 5  # minimum width of a column: two characters and the separator; narrower ones are unreadable


class ShownTable(TableElement):
    """A table whose rows keep exactly their cells; the first row is its head."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[TableRowElement] = []

    def on_child_close(self, context: MarkdownContext, child: MarkdownElement) -> bool:
        assert isinstance(child, TableRowElement)
        self.rows.append(child)
        return False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head, *rows = self.rows
        if len(head.cells) * LEAST_COLUMN > options.max_width:
            for row in self.rows:
                yield Text(" | ").join(cell.content for cell in row.cells)
            return
        self.header, self.body = TableHeaderElement(), TableBodyElement()
        self.header.row, self.body.rows = head, rows
        yield from super().__rich_console__(console, options)


class ShownMarkdown(Markdown):
    """The Markdown of an answer, rendered in linear time."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": ShownTable}

    def __init__(self, markup: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = markup
        self.parsed = keep_short_rows(MarkdownIt().enable(["strikethrough", "table"])).parse(markup)
