"""llms.txt and llms-full.txt: their format, their collection, and when they are sent again."""

import asyncio
import re
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from kit.api import FakeEngine
from test_mcp import PAGES, PagedStore

from pipelines.store import ListedPage
from serve.mcp.llms import (
    BYTES_A_SECOND,
    FULL_OF_ADDRESS,
    LINKS_AT_ONCE,
    MOST_FULL,
    PIECE,
    LlmsRoutes,
    arrange_links,
    write_link,
)
from serve.routes import create_app

LISTED = [
    ListedPage("https://d.test/data", "Data [1]", "How to load data.\u200b It has more."),
    ListedPage("https://d.test/evil", "Evil\n# title", "Words."),
    ListedPage("https://d.test/gone", "", ""),
    ListedPage("https://d.test/guide/a (b).html", "A", "First."),
    ListedPage("https://d.test/guide/c.html", "C", "Second."),
]


def write_links(pages: list[ListedPage], base: str) -> str:
    return arrange_links(pages, [*map(write_link, pages)], base)


class Listed(PagedStore):
    def list_pages(self, index: int, after: str, most: int) -> list[ListedPage]:
        return [page for page in LISTED if page.url > after and page.url in PAGES][:most]


@pytest.fixture
def store() -> Listed:
    return Listed()


@pytest.fixture
def client(store: Listed) -> TestClient:
    return TestClient(create_app(FakeEngine(store), store))


def test_links_follow_the_format():
    text = write_links(LISTED, "https://d.test/")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Pages", "guide"]
    links = [line for line in text.splitlines() if line.startswith("- ")]
    assert links[0] == "- [Data \\[1\\]](https://d.test/data): How to load data. It has more."
    assert links[1].startswith("- [Evil # title](")
    assert links[2] == "- [https://d.test/gone](https://d.test/gone)"
    assert links[3].startswith("- [A](https://d.test/guide/a%20%28b%29.html)")


def test_pages_of_several_hosts_are_listed_by_host():
    pages = [ListedPage(f"https://{host}.test/a", host, "") for host in ("one", "two")]
    assert re.findall(r"^## (.*)$", write_links(pages, ""), re.MULTILINE) == ["one.test", "two.test"]


def test_file_has_a_title_and_a_summary(client):
    reply = client.get("/llms.txt")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    lines = reply.text.splitlines()
    assert lines[0].startswith("# ") and lines[2].startswith("> 3 pages of https://d.test/")
    assert len(re.findall("^# ", reply.text, re.MULTILINE)) == 1


def test_full_file_contains_every_page_with_its_source(client):
    text = client.get("/llms-full.txt").text
    assert re.findall(r"^Source: (.*)$", text, re.MULTILINE) == [page.url for page in LISTED[:3]]
    assert "```\nds = read_csv()\nds.show()\n```" in text
    assert "Call ray.data.read_csv to load comma separated files." in text  # from a page without its body


@pytest.mark.parametrize("path", ["/llms.txt", "/llms-full.txt", "/collections/docs/llms.txt"])
def test_unchanged_file_is_not_sent_again(client, store, path):
    tag = client.get(path).headers["etag"]
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    store.publish("docs")
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("path", ["/llms-full.txt", "/llms.txt"])
async def test_stalled_readers_hold_few_slots_and_delay_no_other_reader(store, path):
    app = create_app(FakeEngine(store), store)
    statuses, reading = Counter[int](), asyncio.Event()

    async def get(reads: bool, address: str = "203.0.113.1") -> None:
        async def receive():
            await asyncio.sleep(60)

        async def send(message):
            if message["type"] == "http.response.start":
                statuses[message["status"]] += 1
            elif message.get("body") and not reads and not reading.is_set():
                await reading.wait()

        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
        scope["client"] = (address, 1)
        await app(scope, receive, send)

    deaf = [asyncio.create_task(get(reads=False)) for _ in range(2 * FULL_OF_ADDRESS)]
    while statuses.total() < len(deaf):
        await asyncio.sleep(0.01)
    assert statuses == {200: FULL_OF_ADDRESS, 429: FULL_OF_ADDRESS}
    await asyncio.wait_for(get(reads=True, address="203.0.113.2"), 30)  # no other reader has to wait
    others = MOST_FULL - FULL_OF_ADDRESS
    deaf += [asyncio.create_task(get(False, f"198.51.100.{n}")) for n in range(others + 3)]
    while statuses.total() < 2 * FULL_OF_ADDRESS + 1 + others + 3:
        await asyncio.sleep(0.01)
    assert statuses == {200: MOST_FULL + 1, 429: FULL_OF_ADDRESS, 503: 3}
    reading.set()
    await asyncio.gather(*deaf)
    await get(reads=True)


async def test_all_readers_of_links_share_a_bandwidth_limit():
    routes = LlmsRoutes(*[None] * 3)  # type: ignore[arg-type]
    text = b"x" * (10 * PIECE)

    async def read() -> bytes:
        return b"".join([piece async for piece in routes._pieces(text)])

    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await asyncio.gather(*(read() for _ in range(5))) == [text] * 5
    assert loop.time() - began >= 49 * PIECE / BYTES_A_SECOND


def test_collection_is_chosen_by_name_and_must_exist(client, store):
    store.publish("other")
    assert client.get("/llms.txt").status_code == 422
    assert client.get("/llms.txt", params={"collection": "other"}).text.startswith("# Of other\n")
    assert client.get("/collections/other/llms-full.txt").text.startswith("# Of other\n")
    assert client.get("/collections/nothing/llms.txt").status_code == 404


async def test_links_are_written_once_per_revision_off_the_event_loop():
    """This holds for any number of readers, and even if the first one leaves."""
    listed, threads = list[str](), list[threading.Thread]()

    class Noting(SimpleNamespace):
        @property
        def begins(self) -> str:
            threads.append(threading.current_thread())
            return "Words."

    many = [Noting(url=f"https://d.test/{n:04}", title=f"Page {n}") for n in range(6 * LINKS_AT_ONCE)]

    class Many(Listed):
        def list_pages(self, index, after, most):
            listed.append(after)
            return [page for page in many if page.url > after][:most]

    app = create_app(FakeEngine(many_store := Many()), many_store)

    async def get() -> None:
        async def receive():
            await asyncio.sleep(60)

        async def send(message):
            pass

        scope = {"type": "http", "method": "GET", "path": "/llms.txt", "headers": [], "query_string": b""}
        await app({**scope, "client": ("203.0.113.1", 1)}, receive, send)

    first, *rest = (asyncio.create_task(get()) for _ in range(10))
    while not listed:
        await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.gather(*rest)
    assert len(threads) == len(many) and threading.main_thread() not in threads
    assert listed == [""]
    many_store.publish("docs")
    await get()
    assert listed == ["", ""]
