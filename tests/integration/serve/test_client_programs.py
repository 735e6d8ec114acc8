"""Third-party client programs work unchanged, through the connections of the proxy.

Covers OpenAI's JavaScript client in Node and in a page, LangChain in JavaScript and Python, the Vercel AI SDK, and
Java's HttpClient.
"""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest
from kit.api import TEXT, FakeEngine, run_server
from kit.browser import Browser, needs_browser
from kit.guarded import SECRET, GuardedStore, guarded
from kit.js_clients import SCRIPTS, ask_by, bundle

from serve.proxy.connections import BoundedConnection
from serve.proxy.waiting import Waiting
from serve.routes import create_app

IGNORED = "image_url, temperature, tools"


@pytest.fixture(scope="module")
def page() -> Iterator["Page"]:
    made = Page(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def service(page: "Page") -> Iterator[str]:
    """Return the URL of the service, whose replies `page` can read."""

    class Connection(BoundedConnection):
        idle = Waiting(BoundedConnection.end, 100, 100)
        stalled = Waiting(BoundedConnection.end, 100, 100)

    store = GuardedStore()
    app = create_app(FakeEngine(store), store)  # type: ignore[arg-type]
    with run_server(guarded(store, app, cors_origins=[page.origin]), http=Connection) as url:
        yield url


class Page(ThreadingHTTPServer):
    """Another site with one page that loads `script`."""

    script = ""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_script, page = self.path == "/client.js", self.server
        assert isinstance(page, Page)
        body = page.script if is_script else '<!doctype html><meta charset="utf-8"><script src="/client.js"></script>'
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript; charset=utf-8" if is_script else "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None: ...


def check(got: dict[str, Any]) -> None:
    """Assert that the chat continued and the forced call was refused."""
    assert got["text"] == got["streamed"] == TEXT
    assert got["refused"] == [400, "tool_choice"]
    assert got.get("ignored", IGNORED) == IGNORED and got.get("models", ["docs"]) == ["docs"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("client", ["openai", "langchain", "ai_sdk"])
def test_node_client_asks_with_a_picture_and_tools(service: str, client: str) -> None:
    check(ask_by(client, f"{service}/v1", SECRET))


def test_langchain_asks_from_python(service: str) -> None:
    models = pytest.importorskip("langchain_openai", reason="`pip install langchain-openai` brings this client")
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]},
        {"role": "assistant", "content": "A table."},
        {"role": "user", "content": "How do I load csv files?"},
    ]
    chat = models.ChatOpenAI(
        model="docs",
        api_key=SECRET,
        base_url=f"{service}/v1",
        temperature=0.2,
        max_retries=0,
        include_response_headers=True,
    )
    whole = chat.bind_tools(tools).invoke(messages)
    with pytest.raises(openai.BadRequestError) as refused:
        chat.bind_tools(tools, tool_choice="required").invoke(messages)
    check(
        {
            "text": whole.content,
            "streamed": "".join(piece.content for piece in chat.bind_tools(tools).stream(messages)),
            "refused": [refused.value.status_code, refused.value.param],
            "ignored": whole.response_metadata["headers"]["x-raydex-ignored"],
        }
    )


@needs_browser
@pytest.mark.exhaustive
def test_openai_client_asks_from_a_page_of_another_origin(service: str, page: Page) -> None:
    page.script = bundle("openai")
    with Browser() as browser:
        browser.open(page.origin)
        check(browser.evaluate(f"clients.run({json.dumps(f'{service}/v1')}, {json.dumps(SECRET)})"))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("java"), reason="java is not installed")
def test_java_client_works_although_it_offers_an_upgrade(service: str, tmp_path: Path) -> None:
    chat = {"model": "docs", "messages": [{"role": "user", "content": "How do I load csv files?"}]}
    asked = {"/query": {"question": "How?"}, "/search": {"question": "How?"}, "/v1/chat/completions": chat}
    sent = [part for path, body in asked.items() for part in (path, json.dumps(body))]
    command = ["java", "-Dfile.encoding=UTF-8", str(SCRIPTS / "Ask.java"), service, SECRET, *sent]
    ran = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    if "jdk.compiler" in ran.stderr:
        pytest.skip("java has no compiler: a JDK is needed")
    replies = ran.stdout.rstrip("\n").split("\n")  # texts contain other line endings
    assert [reply[:4] for reply in replies] == ["200 "] * len(asked), ran.stderr + ran.stdout
    assert json.loads(replies[0][4:])["answer"].startswith("Call `read_csv")
