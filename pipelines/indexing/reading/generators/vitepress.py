"""VitePress: the name of a listing's language, numbers of lines beside it."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator(
    "VitePress",
    marks="lang",
    noise="header-anchor line-numbers-wrapper",
    hidden="div[class^=language-] > span.lang",
    code_lines="line",
)
