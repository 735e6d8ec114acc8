"""Sites built by Sphinx and MkDocs with the lines in docs/widget.md answer from another origin."""

import mimetypes
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.browser import Browser, needs_browser
from kit.hosting import PUBLISHABLE, Hosting, run_hosting
from kit.web import Answer

pytestmark = [pytest.mark.slow, needs_browser]

DOCS = (Path(__file__).parents[3] / "docs" / "widget.md").read_text("utf-8")
SHADOW = "document.querySelector('raydex-widget')?.shadowRoot"


@pytest.fixture(scope="module")
def service() -> Iterator[Hosting]:
    with run_hosting() as service:
        yield service


def lines_of(generator: str, service: Hosting) -> str:
    """Return the lines that the documentation gives to users of a generator, with this service and its key."""
    found = re.search(
        rf"^To add the widget to an? {generator} site,.*?^```\w+\n(.*?)^```", DOCS, re.DOTALL | re.MULTILINE
    )
    assert found
    assert len(found[1].splitlines()) <= 3
    return found[1].replace("https://ask.example.com", service.url).replace("pk_…", PUBLISHABLE)


def build_with_sphinx(folder: Path, lines: str) -> Path:
    (folder / "conf.py").write_text(f"project = 'Tiny'\n{lines}", "utf-8")
    (folder / "index.rst").write_text("Tiny guide\n==========\n\nHow to load files.\n", "utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", folder, folder / "built"], check=True)
    return folder / "built"


def build_with_mkdocs(folder: Path, lines: str) -> Path:
    (folder / "mkdocs.yml").write_text(f"site_name: Tiny\nplugins: []\n{lines}", "utf-8")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text("# Tiny guide\n\nHow to load files.\n", "utf-8")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "--strict"], check=True, cwd=folder)
    return folder / "site"


def publish(service: Hosting, folder: Path) -> str:
    """Put a built site on the other origin, and return the URL of its first page."""
    for path in folder.rglob("*"):
        if path.is_file():
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            address = "/" + path.relative_to(folder).as_posix()
            service.site.routes[address] = Answer(path.read_bytes(), 200, {"Content-Type": kind})
    return f"{service.site.url}/index.html"


@pytest.mark.exhaustive
@pytest.mark.parametrize("generator", ["Sphinx", "MkDocs"])
def test_built_site_answers(service: Hosting, browser: Browser, tmp_path: Path, generator: str) -> None:
    build = {"Sphinx": build_with_sphinx, "MkDocs": build_with_mkdocs}[generator]
    url = publish(service, build(tmp_path, lines_of(generator, service)))
    browser.open(url)
    assert "Tiny guide" in browser.text("h1")
    browser.wait_for(f"!!{SHADOW}?.querySelector('.launcher')")
    browser.click("raydex-widget .launcher")
    browser.do(lambda page: page.locator("raydex-chat textarea").wait_for())
    browser.do(lambda page: page.keyboard.type("How do I load csv files?"))
    browser.press("Enter")
    browser.do(lambda page: page.locator("raydex-chat .foot .actions").wait_for())
    assert "to load it" in browser.text("raydex-chat .answer")
    row = service.recorder.rows[-1]
    assert (row["page"], row["channel"], row["collection"]) == (url, "widget", "docs")
    assert str(row["key_name"]).startswith("docs-site/")
    browser.press("Escape", "Control+k")
    browser.do(lambda page: page.keyboard.type("comma"))
    browser.do(lambda page: page.locator("raydex-widget a.result").first.wait_for())
    assert browser.violations("document.querySelector('raydex-widget')") == []
