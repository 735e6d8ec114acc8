r"""Represents a page as a tree, cuts it into chunks, and writes it as Markdown and plain text.

`tree` defines the nodes, `builder` groups them into sections, `flow` turns a section into a flat list of blocks, and
`cut` makes chunks from it. The Markdown of a chunk is a canonical subset of CommonMark plus GitHub tables.
`markdown.write` writes it, `stored.plain_text` recovers the plain text that is embedded, searched and hashed, and
`blocks.read_blocks` parses it into blocks.

**Blocks** follow each other, and their separators are the same in Markdown and in the plain text: a line break is a
line break, and one empty line is one empty line. The exception is that *two empty lines mean a line break*. They are
written where CommonMark needs an empty line and the plain text has none. A Markdown reader treats any number of empty
lines alike.

- A *paragraph* is one line. A backslash at its end is a line break within the paragraph (`<br>`, or the line below a
  term). There are no soft breaks: a line without the backslash ends its block.
- An *item* begins with `- `, or with a number and `. ` (`12. `). Other numberings (`iv. `) are lines of text. The rest
  of an item (further paragraphs, code, tables, items) is indented by **four columns**, regardless of the marker.
- *Code* is fenced by at least three backticks, always more than any run of backticks inside it. The language follows
  the opening fence if it is known. Every fence is closed: code that was cut is closed and reopened with its language.
  In code, a line `…` marks the lines left out between the scope's opening lines and the continuation.
- A *table* has rows `| a | b |`, a header row, and `| --- | --- |` below the header. A table without a header has an
  empty one: `|  |  |`. A header with fewer cells than the rows is padded with cells that have no space: `| a ||`. When
  a table is cut, each part repeats the header. A pipe within a cell is `\|`, even within code.
- A *note* (admonition, quotation) is quoted: each of its lines begins with `> `. A line without `>` separates two
  consecutive notes.
- Lists, notes and their contents nest by prefix: `> ` for a note, four spaces for a list level.
- A chunk may begin within a list, or a list may begin with another list. An empty marker then opens each level: `-   `
  (dash, three spaces) if the plain text starts without indentation, `*   ` if it is indented.

      -   - an item of an inner list, whose outer item is in the previous chunk
          - the next one

- In text, a line `…` separates the repeated lines (the sentence that introduces a list) from the continuation.

**Inline**, a line may contain `code` (in as many backticks as needed, padded with a space next to a backtick), links
`[text](https://…)` with absolute targets that have no spaces or parentheses, links whose text is code, and struck-out
text in `~~`. There is no emphasis, no image, no HTML and no heading: the heading path is stored separately. A backslash
before ASCII punctuation makes it a literal character. Backslashes are written only where the character would be
markup (`\*args`, `\[text\](target)`, `\-`, `\#`, `\>` or `1\.` at the beginning of a line, every `\|`). A line of text
that begins with a space starts with `&#32;` instead.

**The plain text** has none of this markup: no fences, escapes, link targets, quote marks, `---` rows or empty headers.
Items keep their markers. Each list level is indented by two spaces instead of four columns; code in a list is not
indented. The cells of a row are separated by ` | `. Text that this package did not write is
parsed as far as it follows this Markdown, and never causes an error.
"""

from pipelines.page.flow import section_text

__all__ = ["section_text"]
