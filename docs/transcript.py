"""Writes what a client of the Model Context Protocol and a service say to each other, as docs/mcp.md shows it.

    python docs/transcript.py URL              print it; URL ends with /mcp, `raydocs` is the Ray documentation
    python docs/transcript.py URL --write      replace the transcript in docs/mcp.md

The client is that of the official SDK. Long texts are cut; ids of conversations are left out, so that it repeats.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from mcp import Client

PAGE = Path(__file__).parent / "mcp.md"
BEGIN, END = "<!-- transcript: written by `python docs/transcript.py URL --write` -->\n````\n", "````\n<!-- end -->"
FIRST, LAST = 20, 5  # lines of a text
RAY = "https://docs.ray.io/en/master/data/loading-data.html"
CALLS = (
    ("list_collections", {}),
    ("search_docs", {"query": "How do I read a CSV file?", "collection": "raydocs", "k": 2}),
    ("ask_docs", {"question": "How do I read a CSV file?", "collection": "raydocs"}),
    ("read_page", {"url": RAY, "section": "reading-files-from-nfs"}),
    ("read_page", {"url": RAY}),
    ("read_page", {"url": RAY, "part": 2}),
    ("search_docs", {"query": "actors", "collection": "ray"}),
    ("search_docs", {"query": "actors", "collection": "raydocs", "k": 50}),
    ("read_page", {"url": "https://docs.ray.io/en/master/data/load-data.html"}),
)


async def converse(url: str) -> AsyncIterator[str]:
    """Yield the lines of the conversation with the service at `url`."""
    async with Client(url, mode="legacy") as client:
        info = client.server_info
        yield f"→ initialize\n← {info.name} ({info.title}), protocol {client.protocol_version}"
        yield cut(client.instructions or "")
        yield "\n→ tools/list"
        for tool in (await client.list_tools()).tools:
            arguments = ", ".join(tool.input_schema.get("properties", {}))
            yield f"← {tool.name}({arguments})\n{cut(tool.description or '')}"
    async with Client(url) as client:
        yield f"\nThe same service to a client of the revision {client.protocol_version}, which knows no sessions:"
        for name, arguments in CALLS:
            yield f"\n→ tools/call {name} {json.dumps(arguments, ensure_ascii=False)}"
            async for line in call(client, name, arguments):
                yield line
        listed = await client.list_resources()
        yield f"\n→ resources/list\n← {len(listed.resources)} pages, and a cursor for the next ones; the first:"
        yield cut(f"{listed.resources[0].uri}\n{listed.resources[0].title}: {listed.resources[0].description}")
        templates = await client.list_resource_templates()
        yield f"\n→ resources/templates/list\n← {templates.resource_templates[0].uri_template}"
        yield f"\n→ resources/read {listed.resources[0].uri}"
        read = await client.read_resource(listed.resources[0].uri)
        yield f"← {read.contents[0].mime_type}\n{cut(getattr(read.contents[0], 'text', ''), 8)}"


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
    """Return a text indented, cut in its middle, without what differs each time."""
    lines = re.sub(r'conversation="[^"]+"', 'conversation="…"', text).splitlines()
    left = len(lines) - first - last
    shown = [*lines[:first], f"… {left} more lines …", *lines[-last:]] if left > 1 else lines
    return "\n".join(f"  {line}".rstrip() for line in shown)


async def main() -> None:
    url, *flags = sys.argv[1:]
    text = "\n".join([line async for line in converse(url)]) + "\n"
    if "--write" not in flags:
        print(text, end="")
        return
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, f"{PAGE} has no place for the transcript"
    PAGE.write_text(f"{before}{begin}{text}{end}{after}", "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
