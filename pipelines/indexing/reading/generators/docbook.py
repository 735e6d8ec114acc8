"""DocBook XSL: boxes with an id for each part of a book, entries of variable lists."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator(
    "DocBook",
    noise="navheader navfooter legalCopy",
    listings="indexdiv",
    boxes="note tip warning caution important",
    contents="toc",
    sections="book part chapter appendix preface reference refentry refsynopsisdiv refsect1 refsect2 refsect3 "
    "refsection sect1 sect2 sect3 sect4 sect5 simplesect glossary bibliography section",
)
