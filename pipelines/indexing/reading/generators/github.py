"""GitHub, and what shows Markdown as GitHub does (Hugo's and Jekyll's themes, wikis)."""

from pipelines.indexing.reading.generator import Generator

GENERATOR = Generator(
    "GitHub",
    main=".markdown-body",
    noise="anchorjs-link zeroclipboard-container fn-backref",
    code_lines="code-line",
)
