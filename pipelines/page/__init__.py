r"""Pages as trees, of which chunks are cut, and Markdown and plain text are written.

`tree` has the nodes, `builder` puts them into sections, `flow` lays a section out in lines, `cut` makes chunks of it.
The Markdown of a chunk is a canonical subset of CommonMark with the tables of GitHub. `markdown.write` writes it,
`stored.plain_text` gives back the plain text that is embedded, searched and hashed, `blocks.read_blocks` its blocks.

**Blocks** stand one below the other. Whatever divides them divides them in the plain text too: a line break is one, an
empty line is one, and *two empty lines are a line break*: where CommonMark needs an empty line and the plain text has
none. To a reader of Markdown any number of empty lines is the same.

- A *paragraph* is one line; a backslash at its end is a line break within it (`<br>`, or the line below a term). There
  are no soft breaks: a line without the backslash ends its block.
- An *item* begins with `- `, or a number and `. ` (`12. `). Other numberings (`iv. `) are lines of text. What belongs
  to an item, further paragraphs, code, tables, items, stands **four columns** further right, whatever its marker is.
- *Code* is fenced by at least three backticks, more than any run of them within; the language follows the opening fence
  if it is known. Each fence is closed: code that was cut is closed and opened again with its language, and a line `…`
  in it stands for what was left out between the lines that name its scope and the lines it goes on with.
- A *table* has rows `| a | b |`, a head, and `| --- | --- |` below the head. A table without a head has an empty one:
  `|  |  |`. A head with fewer cells than the rows is filled by cells without a space: `| a ||`. A part of a table that
  was cut repeats the head. A pipe within a cell is `\|`, within code too.
- A *note* (admonition, quotation) is quoted: each of its lines begins with `> `. Two notes in a row are divided by a
  line without `>`.
- Lists, notes and their contents nest by their prefixes: `> ` and four spaces a level.
- A chunk may begin within a list, or a list may begin with another one. Then an empty marker opens each level: `-   `
  (dash, three spaces) where the plain text starts without indentation, `*   ` where it is indented.

      -   - an item of an inner list, whose outer item stands in the chunk before
          - the next one

- A line `…` of text stands between what a chunk repeats (the sentence that introduces a list) and where it goes on.

**In a line** stand `code` (in as many backticks as it needs; padded with a space at a backtick), links
`[text](https://…)` with absolute targets without spaces and parentheses, links whose text is code, and what is struck
out, in `~~`. No emphasis, no images, no HTML, no headings: the heading path is beside the text. A backslash before
ASCII punctuation makes it a plain sign; it stands only where the sign would mean something (`\*args`,
`\[text\](target)`, a `\-`, `\#`, `\>` or `1\.` that begins a line, every `\|`). A line of text that begins with a space
has `&#32;` for it.

**The plain text** has none of these signs: no fences, escapes, targets, quotes, no rows `---` and no empty head. Items
keep their markers, each level of lists is indented by two spaces instead of four columns, and code in a list by none.
Rows have their cells divided by ` | `. A text that was never written here (an index of an earlier version) is read as
far as it is such Markdown, and nothing of it fails.
"""

from pipelines.page.flow import section_text

__all__ = ["section_text"]
