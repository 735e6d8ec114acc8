"""A bucket on loopback that speaks as much of S3 as pyarrow needs; an object is there once its upload is completed."""

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

NAME = "backups"


class Bucket:
    """`objects` by key, and the `parts` of uploads that nobody has completed; `on_part` is called for each part."""

    def __init__(self, port: int) -> None:
        self.url = f"s3://{NAME}/dumps?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, list[bytes]] = {}
        self.on_part: Callable[[bytes], None] = lambda part: None

    @property
    def dumps(self) -> dict[str, bytes]:
        """The objects below the folder, by name."""
        return {key.removeprefix("dumps/"): body for key, body in self.objects.items() if key != "dumps/"}

    def answer(self, method: str, key: str, query: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Return the status and the body of a reply."""
        status, found = 200, b""
        match method, key:
            case "GET", "":
                found = self._listing(query.get("prefix", ""))
            case "POST", _ if "uploads" in query:
                self.parts[key] = []
                found = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            case "POST", _:
                self.objects[key] = b"".join(self.parts.pop(key))
                found = b"<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>"
            case "PUT", _ if "uploadId" in query:
                self.parts[key].append(body)
                if body:
                    self.on_part(body)
            case "PUT", _:
                self.objects[key] = body
            case "DELETE", _:
                self.objects.pop(key, None)
            case _ if key in self.objects:
                found = self.objects[key]
            case _ if key:
                status = 404
        return status, found

    def _listing(self, prefix: str) -> bytes:
        found = [(key, len(body)) for key, body in sorted(self.objects.items()) if key.startswith(prefix)]
        rows = "".join(f"<Contents><Key>{key}</Key><Size>{size}</Size></Contents>" for key, size in found)
        return f"<ListBucketResult>{rows}</ListBucketResult>".encode()


@contextmanager
def run_bucket() -> Iterator[Bucket]:
    """Serve a new bucket."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # a client that was killed reads no reply
                super().handle()

        def answer(self) -> None:
            path = urlsplit(self.path)
            key, query = unquote(path.path).removeprefix(f"/{NAME}").lstrip("/"), dict(parse_qsl(path.query, True))
            status, found = bucket.answer(self.command, key, query, self._body())
            first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
            self.send_response(206 if first else status)
            part = found[int(first or 0) : int(last) + 1 if last else None]
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(part)

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = _join_chunks(self.rfile)
            return _join_chunks(io.BytesIO(body)) if "aws-chunked" in self.headers["Content-Encoding"] else body

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        bucket = Bucket(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield bucket
        finally:
            server.shutdown()


def _join_chunks(file: BinaryIO) -> bytes:
    """Return what chunks hold, and read the trailer after the last."""
    parts = []
    while size := int(file.readline().partition(b";")[0], 16):
        parts.append(file.read(size))
        file.readline()
    while file.readline().strip():
        pass
    return b"".join(parts)
