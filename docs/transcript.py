"""Writes what a client of the Model Context Protocol and a service say to each other, as docs/mcp.md shows it.

    python docs/transcript.py URL              print it; URL ends with /mcp, `raydocs` is the Ray documentation
    python docs/transcript.py URL --write      replace the transcript in docs/mcp.md

The client is that of the official SDK. Long texts are cut.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from mcp import Client

PAGE = Path(__file__).parent / "mcp.md"
BEGIN, END = "<!-- transcript: written by `python docs/transcript.py URL --write` -->\n````\n", "````\n<!-- end -->"
FIRST, LAST = 8, 4  # lines of a text
CALLS = (
    ("list_collections", {}),
    ("search_docs", {"query": "How do I read a CSV file?", "collection": "raydocs", "k": 2}),
    ("read_page", {"url": "https://docs.ray.io/en/master/data/load-data.html"}),
)


async def converse(url: str) -> AsyncIterator[str]:
    """Yield the lines of the conversation with the service at `url`."""
    async with Client(url) as client:
        for name, arguments in CALLS:
            yield f"→ tools/call {name} {json.dumps(arguments, ensure_ascii=False)}"
            async for line in call(client, name, arguments):
                yield line
            yield ""


async def call(client: Client, name: str, arguments: dict[str, object]) -> AsyncIterator[str]:
    """Yield what a call of a tool brings: its progress, its text, the keys of its structured result."""
    told: list[str] = []

    async def note(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(f"← progress: {message}")

    result = await client.call_tool(name, arguments, progress_callback=note)
    for line in told:
        yield line
    yield f"← {'error' if result.is_error else 'result'}"
    yield cut(getattr(result.content[0], "text", ""))
    if result.structured_content:
        yield f"← structured: {', '.join(result.structured_content)}"


def cut(text: str, first: int = FIRST, last: int = LAST) -> str:
    """Return a text indented, cut in its middle."""
    lines = text.splitlines()
    left = len(lines) - first - last
    shown = [*lines[:first], f"… {left} more lines …", *lines[-last:]] if left > 1 else lines
    return "\n".join(f"  {line}".rstrip() for line in shown)


async def main() -> None:
    url, *flags = sys.argv[1:]
    text = "\n".join([line async for line in converse(url)])
    if "--write" not in flags:
        print(text, end="")
        return
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, f"{PAGE} has no place for the transcript"
    PAGE.write_text(f"{before}{begin}{text}{end}{after}", "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
