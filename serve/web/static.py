"""Serves the scripts, styles and libraries of the pages: compressed once, cached by content.

Under `/web/VERSION/…`, where VERSION is a hash of all files, a file never changes, and a page can't load modules of two
versions. Under `/web/…` a browser revalidates each file.
"""

import gzip
import hashlib
import json
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import Request

from pipelines.text.languages import LANGUAGES, read_texts

TYPES = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
FOLDERS = ("", "chat/", "widget/", "vendor/")
FOR_EVER = "public, max-age=31536000, immutable"
ASK_FIRST = "public, max-age=0, must-revalidate"
# Scripts and styles contain no secrets, and pages of other sites load them as part of the widget.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file ready to send: its type, its plain and compressed bytes, and their digest."""

    media_type: str
    plain: bytes
    packed: bytes
    digest: str

    @classmethod
    def read(cls, path: Traversable) -> "StaticFile":
        return cls.of(TYPES["." + path.name.rpartition(".")[2]], path.read_bytes())

    @classmethod
    def of(cls, media_type: str, plain: bytes) -> "StaticFile":
        return cls(media_type, plain, gzip.compress(plain, mtime=0), hashlib.sha256(plain).hexdigest()[:16])

    def reply(self, request: Request, cache: str) -> Response:
        """Return the file, compressed if the client accepts that; 304 if the client has it."""
        packed = "gzip" in request.headers.get("accept-encoding", "")
        tag = f'"{self.digest}{"-gz" if packed else ""}"'
        headers = {**HEADERS, "ETag": tag, "Cache-Control": cache}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers |= {"Content-Encoding": "gzip"} if packed else {}
        return Response(self.packed if packed else self.plain, media_type=self.media_type, headers=headers)


def read_files() -> dict[str, StaticFile]:
    """Return the files of the pages by their path below `/web/`."""
    root = resources.files("serve") / "web"
    found = {folder + path.name: path for folder in FOLDERS for path in (root / folder).iterdir() if path.is_file()}
    return {
        name: StaticFile.read(path) for name, path in found.items() if name.endswith((".js", ".css", "LICENSES.txt"))
    }


def text_files() -> dict[str, StaticFile]:
    """Return the interface texts: `texts/launcher/de.json`, and `texts/page/de.json`, which includes the former."""
    files = {}
    for tag in LANGUAGES:
        launcher, page = read_texts(tag)["launcher"], read_texts(tag)["page"]
        for part, texts in (("launcher", launcher), ("page", launcher | page)):
            content = json.dumps(texts, ensure_ascii=False).encode()
            files[f"texts/{part}/{tag}.json"] = StaticFile.of("application/json", content)
    return files


FILES = read_files() | text_files()
VERSION = hashlib.sha256("".join(file.digest for _, file in sorted(FILES.items())).encode()).hexdigest()[:12]


# The only script that other sites refer to: its URL is fixed, and it loads the other files at their version.
WIDGET = StaticFile.of("text/javascript", FILES["widget/widget.js"].plain.replace(b"web/", f"web/{VERSION}/".encode()))


def add_files(app: FastAPI) -> None:
    """Add `/web/…` and `/widget.js` to `app`."""

    @app.get("/widget.js", include_in_schema=False)
    async def widget(request: Request) -> Response:
        return WIDGET.reply(request, ASK_FIRST)

    @app.get("/web/{path:path}", include_in_schema=False)
    async def web(path: str, request: Request) -> Response:
        kept = path.removeprefix(f"{VERSION}/")
        if kept not in FILES:
            raise HTTPException(404, "Not Found")
        return FILES[kept].reply(request, ASK_FIRST if kept == path else FOR_EVER)
