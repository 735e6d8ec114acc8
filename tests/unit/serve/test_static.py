"""The pages' files are small, cached and compressed, and every reference to them agrees."""

import gzip
import json
import re
from importlib import resources

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from pipelines.text.languages import LANGUAGES, read_texts
from serve.web.pages import add_pages
from serve.web.static import FILES, VERSION

APP = FastAPI()
add_pages(APP)
ASKING = TestClient(APP)
WEB = resources.files("serve") / "web"
LIBRARIES = json.loads((WEB / "vendor" / "package.json").read_text())["dependencies"]


def test_whole_page_is_at_most_120_kb_compressed() -> None:
    page = ASKING.get("/").content
    scripts = {name: len(file.packed) for name, file in FILES.items() if name.startswith(("page.", "chat/", "vendor/"))}
    texts = max(len(file.packed) for name, file in FILES.items() if name.startswith("texts/page/"))
    assert sum(scripts.values()) + len(gzip.compress(page)) + texts <= 120_000, scripts


def test_page_knows_the_available_languages() -> None:
    named = re.search(r"LANGUAGES = (\[.*\])", FILES["chat/texts.js"].plain.decode())
    assert named and tuple(json.loads(named[1])) == LANGUAGES
    assert {f"texts/{part}/{tag}.json" for tag in LANGUAGES for part in ("launcher", "page")} <= set(FILES)


SAID = re.compile(r"""\b(?:say|parts)\((?:[^()"]*\? )?"(\w+)"(?: : "(\w+)")?""")
PROSE = re.compile(r"""["`][A-Z][a-z']+(?:["….]| [a-z(“$])""")
# Comments, names of keys, and console messages for people who set up the widget.
NOT_READ = re.compile(r"""^\s*(?:\*|//|/\*)|// |console\.|new Error\(|[!=]== "|Bearer |warn\(|(?:valid|among)\(""")


def test_scripts_contain_no_prose_and_every_used_text_exists() -> None:
    texts = read_texts("en")["launcher"] | read_texts("en")["page"]
    for name, file in FILES.items():
        if name.startswith(("page.", "chat/", "widget/")) and name.endswith(".js"):
            script = file.plain.decode()
            assert {one for found in SAID.findall(script) for one in found if one} <= set(texts), name
            lines = [line for line in script.splitlines() if PROSE.search(line) and not NOT_READ.search(line)]
            assert lines == [], name


def test_every_file_imported_by_a_module_is_served_and_preloaded() -> None:
    page = ASKING.get("/").text
    for name, file in FILES.items():
        if name.startswith("chat/"):
            for imported in re.findall(r"^import .* from \"(.*)\";", file.plain.decode(), re.MULTILINE):
                path = imported.replace("./", "chat/") if imported.startswith("./") else imported.replace("../", "")
                assert path in FILES and f'modulepreload" href="web/{VERSION}/{path}"' in page


@pytest.mark.parametrize("page", ["/", "/a/an-answer"])
def test_page_refers_to_files_of_this_version_below_its_own_path(page: str) -> None:
    named = re.findall(r'(?:href|src)="([^"]*web/[^"]*)"', ASKING.get(page).text)
    assert len(named) > 10
    for path in named:
        reply = ASKING.get(page.rpartition("/")[0] + "/" + path)
        assert reply.status_code == 200 and "immutable" in reply.headers["Cache-Control"]


def test_file_is_compressed_if_accepted_and_not_sent_again() -> None:
    for accepted, encoding in (("gzip, br", "gzip"), ("identity", None)):
        headers = {"Accept-Encoding": accepted}
        reply = ASKING.get("/web/chat/chat.js", headers=headers)
        assert reply.headers.get("Content-Encoding") == encoding and reply.content == FILES["chat/chat.js"].plain
        assert "max-age=0" in reply.headers["Cache-Control"] and reply.headers["X-Content-Type-Options"] == "nosniff"
        again = ASKING.get("/web/chat/chat.js", headers={**headers, "If-None-Match": reply.headers["ETag"]})
        assert again.status_code == 304 and again.content == b""


@pytest.mark.parametrize(
    "path", ["", "index.html", "pages.py", "../settings.py", "%2e%2e/settings.py", "vendor/build.mjs", "x/page.js"]
)
def test_nothing_else_is_served(path: str) -> None:
    assert ASKING.get(f"/web/{path}").status_code == 404


@pytest.mark.parametrize("name", LIBRARIES)
def test_library_states_its_version_and_license(name: str) -> None:
    built = FILES[f"vendor/{name.removesuffix('.js')}.js"].plain.decode()
    assert built.startswith(f"/* {name} {LIBRARIES[name]} | ")
    assert f"{name} {LIBRARIES[name]} (" in FILES["vendor/LICENSES.txt"].plain.decode()
