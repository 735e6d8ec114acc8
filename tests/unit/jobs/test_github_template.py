"""The workflow of a documentation repository, with a real git repository and a receiver on this machine."""

import json
import os
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from pipelines.indexing.folders.folder import FolderSettings
from pipelines.signing import is_signed

FOLDER = Path(__file__).parents[3] / "deploy" / "github"
SCRIPT, DOCS = FOLDER / "announce_changes.py", "https://docs.example/en/"


class Receiver(ThreadingHTTPServer):
    """Accepts announcements. `said` has their paths and bodies, `statuses` the replies before 202."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.said: list[tuple[str, dict[str, list[str]]]] = []
        self.statuses: list[int] = []


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body, to = self.rfile.read(int(self.headers["Content-Length"])), self.server
        at, signature = self.headers["X-Raydex-Timestamp"], self.headers["X-Raydex-Signature"]
        right = is_signed("rdw_secret", at, body, signature, time.time())
        status = to.statuses.pop() if to.statuses else 202 if right else 401
        if status == 202:
            to.said.append((self.path, json.loads(body)))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps({"id": len(to.said), "error": "the signature is wrong"}).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, args=(0.01,), daemon=True).start()
        yield receiver
        receiver.shutdown()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with one commit, `first`."""
    pages = {"docs/index.md": "start", "docs/guide/a.md": "a", "docs/old.md": "a page that moves"}
    write(tmp_path, {**pages, "src/x.md": "x"})
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "first")
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def git(folder: Path, *words: str) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@docs.example", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *named, *words], cwd=folder, check=True)


def commit(folder: Path, tag: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", tag)
    git(folder, "tag", tag)


def announce(folder: Path, to: Receiver, before: str = "first", **changed: str) -> "subprocess.CompletedProcess[str]":
    given = {"RAYDEX_URL": f"http://127.0.0.1:{to.server_port}", "RAYDEX_COLLECTION": "docs",
             "RAYDEX_SECRET": "rdw_secret", "DOCS_URL": DOCS, **changed}  # fmt: skip
    command = [sys.executable, str(SCRIPT), before, "HEAD"]
    return subprocess.run(command, cwd=folder, env=os.environ | given, capture_output=True, text=True, check=False)


def test_pages_changed_by_a_push_are_announced(repository, receiver):
    write(repository, {"docs/guide/a.md": "b", "docs/guide/nä w.rst": "new", "docs/pic.png": "", "docs/.hidden.md": "",
                       "mkdocs.yml": "", "src/x.md": "y", "docs/manual.pdf": "%PDF"})  # fmt: skip
    git(repository, "mv", "docs/old.md", "docs/moved.md")
    commit(repository, "second")
    done = announce(repository, receiver)
    assert (done.returncode, done.stdout) == (0, "announced as 1: 4 changed, 1 deleted\n"), done.stderr
    changed = [f"{DOCS}guide/a/", f"{DOCS}guide/n%C3%A4%20w/", f"{DOCS}manual.pdf", f"{DOCS}moved/"]
    assert receiver.said == [("/v1/collections/docs/changes", {"changed": changed, "deleted": [f"{DOCS}old/"]})]


def test_first_push_or_push_without_pages_announces_nothing(repository, receiver):
    write(repository, {"src/x.md": "y"})
    commit(repository, "second")
    assert announce(repository, receiver).stdout == "no page was changed\n"
    assert "nothing to compare with" in announce(repository, receiver, before="0" * 40).stdout
    assert receiver.said == []


def test_failure_is_reported_and_a_busy_service_retried(repository, receiver):
    write(repository, {"docs/guide/a.md": "b"})
    commit(repository, "second")
    receiver.statuses = [503]
    assert announce(repository, receiver).returncode == 0
    wrong = announce(repository, receiver, RAYDEX_SECRET="other")
    assert wrong.returncode == 1 and "answers 401" in wrong.stderr and "the signature is wrong" in wrong.stderr
    assert "RAYDEX_COLLECTION must be set" in announce(repository, receiver, RAYDEX_COLLECTION="").stderr
    assert "DOCS_URL_STYLE is 'auto'" in announce(repository, receiver, DOCS_URL_STYLE="auto").stderr
    assert "git can't compare gone with HEAD" in announce(repository, receiver, before="gone").stderr
    assert len(receiver.said) == 1


@pytest.mark.parametrize("style", ["keep", "html", "directory", "bare"])
def test_file_gets_the_url_defined_by_its_collection_folder(style, tmp_path):
    url_of = runpy.run_path(str(SCRIPT))["url_of"]
    folder = FolderSettings(path=str(tmp_path), base_url=DOCS, url_style=style)
    pages = ["index.md", "guide/README.md", "guide/a b.md", "v1.2.md"]
    for path in [*pages, "a.rst", "b.ipynb", "c.mdx", "d.html", "e.pdf", "f.txt"]:
        assert url_of(path, DOCS, style, ["index", "readme"]) == folder.url_of(folder.root + path), path


def test_workflow_runs_the_script_with_the_variables_it_reads():
    workflow = yaml.safe_load((FOLDER / "raydex.yaml").read_text())
    step = workflow["jobs"]["announce"]["steps"][-1]
    assert SCRIPT.name in step["run"]
    text = SCRIPT.read_text()
    assert [name for name in step["env"] if name not in ("BEFORE", "AFTER") and name not in text] == []
