"""docs/start.md as a newcomer follows it: its seven steps, read from the page, in order, in an empty folder.

Only things that this machine lacks are replaced: the install, which is the one that runs the test; the reader's site;
the port; and Ollama, whose place a scripted model takes.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from kit.head_process import ROOT, free_ports
from kit.processes import eventually, marked
from kit.reindexing import html_page, site_sections
from kit.scripted_llm import Reply, ScriptedLLM
from kit.web import Site

from jobs.environment import home

pytestmark = pytest.mark.exhaustive

PAGE = (ROOT / "docs" / "start.md").read_text()
THEIR_SITE, THEIR_PORT, THEIR_INSTALL = "https://docs.example.com/", "http://127.0.0.1:8000", "/srv/raydex/.venv/bin/"
READY = {"demo": "Ctrl-C stops everything", "serve": "ask in a browser at"}
QUESTION, WRITTEN = "What does the usage of page 3 treat?", "It treats subject 94 and matter 52 [1]."
CRON = re.compile(r"(?:[\d*/,-]+ +){5}")


def steps() -> dict[int, list[str]]:
    """Return the lines to type for each step: its fenced blocks and the commands in its tables, without remarks."""
    parts = re.split(r"^## (\d)\. .*\n", PAGE, flags=re.MULTILINE)[1:]
    found = {}
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        blocks = "".join(re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)).splitlines()
        cells = re.findall(r"^\|.*`(claude [^`]*)`", text, re.MULTILINE)
        found[int(number)] = [line.partition("  #")[0].strip() for line in [*blocks, *cells]]
    return found


class Newcomer:
    """A person with an empty folder, an empty home folder and the install on PATH."""

    def __init__(self, folder: Path, changes: dict[str, str], **variables: str) -> None:
        self.folder, self.changes = folder / "empty", changes
        self.folder.mkdir()
        for name in ("ollama", "claude"):  # programs that this machine lacks record their arguments
            (folder / name).write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(folder / name))}.called\n')
            (folder / name).chmod(0o755)
        path = os.pathsep.join([str(Path(sys.executable).parent), str(folder), os.environ["PATH"]])
        self.environment = os.environ | variables | {"PATH": path, "RAYDEX_HOME": str(folder / "home")}
        self.running: subprocess.Popen[str] | None = None

    def type(self, line: str) -> str:
        """Type a line and return its output. Wait for its end, or until it is ready if it runs until Ctrl-C."""
        for written, here in self.changes.items():
            line = line.replace(written, here)
        shell = subprocess.Popen(["bash", "-c", line], cwd=self.folder, env=self.environment, text=True,
                                 start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        assert shell.stdout is not None
        ready, said = READY.get(line.rpartition("raydex ")[2].partition(" ")[0]), ""
        if ready:
            self.running = shell
        for printed in shell.stdout:
            said += printed
            if ready and ready in printed:
                return said
        if ready:
            self.running = None
        assert shell.wait() == 0, f"{line}\n{said}"
        return said

    def press_ctrl_c(self) -> None:
        """End the running command."""
        if self.running is not None:
            os.killpg(self.running.pid, signal.SIGINT)
            self.running.communicate(timeout=120)
            self.running = None


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    pages = {f"/{name}.html": html_page(name, sections) for name, sections in site_sections(6).items()}
    links = tuple(path.removeprefix("/") for path in pages)
    if (made := home() / "models").is_dir():  # by `make install`, which is step 1
        shutil.copytree(made, tmp_path / "home" / "models")
    (port,) = free_ports(1)
    with ExitStack() as stack:
        site = stack.enter_context(Site({"/": html_page("Site", {}, links=links), **pages}))
        changes = {THEIR_SITE: f"{site.url}/ --allow-private", THEIR_PORT: f"http://127.0.0.1:{port}",
                   THEIR_INSTALL: "", "raydex demo": f"raydex demo --port {port}",
                   "your question": QUESTION}  # fmt: skip
        person = Newcomer(tmp_path, changes, RAYDEX_PORT=port, OLLAMA_HOST="127.0.0.1:9")
        stack.callback(person.press_ctrl_c)
        yield person
    eventually(lambda: marked(f"RAYDEX_HOME={tmp_path / 'home'}") == [], "all of it has ended", 60)


def test_last_step_names_the_output_of_an_earlier_step() -> None:
    page = steps()
    assert list(page) == [1, 2, 3, 4, 5, 6, 7] and all(page.values())
    assert page[3][0].endswith("--collection mydocs")
    assert (page[3][1], page[7][0]) == ("raydex default mydocs", "raydex nightly mydocs")


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_seven_steps_run_in_an_empty_folder(newcomer: Newcomer) -> None:
    page = steps()
    assert page[1] == ["make install", "source .venv/bin/activate"]
    (demo,) = page[2]
    assert "freshness.html#freshness" in newcomer.type(demo)
    newcomer.press_ctrl_c()

    index, default = page[3]
    assert "published" in newcomer.type(index)
    newcomer.type(default)

    serving, asking = page[4]
    newcomer.type(serving)
    assert "subject 94" in newcomer.type(asking)
    newcomer.press_ctrl_c()

    with ScriptedLLM(default=Reply(WRITTEN)) as llm:
        newcomer.environment["OPENAI_BASE_URL"] = llm.url
        (writing,) = page[5]
        newcomer.type(writing)
        assert (newcomer.folder.parent / "ollama.called").read_text() == "pull qwen3:4b\n"
        assert "It treats subject 94" in newcomer.type(asking)

        (agent,) = page[6]
        newcomer.type(agent)
        mcp = (newcomer.folder.parent / "claude.called").read_text().split()[-1]
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                 "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                            "clientInfo": {"name": "newcomer", "version": "1"}}}  # fmt: skip
        accepted = {"Accept": "application/json, text/event-stream"}
        assert "serverInfo" in httpx.post(mcp, json=hello, headers=accepted, timeout=60).text
        newcomer.press_ctrl_c()

    once, every_night = page[7]
    assert "unchanged" in newcomer.type(once)
    assert CRON.match(every_night)
    assert "unchanged" in newcomer.type(CRON.sub("", every_night))
    assert not list(newcomer.folder.iterdir()), "nothing was left where the newcomer stood"
