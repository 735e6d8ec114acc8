"""Serves a bucket on loopback with the part of S3 that pyarrow needs. An object appears once its upload is complete."""

import io
from collections.abc import Callable
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

from kit.web import Answer, Handler, Server

NAME = "backups"


class ChunkReader(Handler):
    """Reads request bodies in chunked encoding, including S3's chunks inside chunks."""

    def read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return super().read_body()
        body = _join_chunks(self.rfile)
        return _join_chunks(io.BytesIO(body)) if "aws-chunked" in self.headers["Content-Encoding"] else body


class Bucket(Server):
    """Stores `objects` by key, and `parts` of unfinished uploads. Calls `on_part` for each part."""

    handler = ChunkReader

    def __init__(self) -> None:
        super().__init__()
        self.url = f"s3://{NAME}/dumps?endpoint_override={self.host}&scheme=http&region=us-east-1"
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, list[bytes]] = {}
        self.on_part: Callable[[bytes], None] = lambda part: None

    @property
    def dumps(self) -> dict[str, bytes]:
        """Return the objects below the folder by name."""
        return {key.removeprefix("dumps/"): body for key, body in self.objects.items() if key != "dumps/"}

    def answer(self, handler: Handler) -> Answer:
        path = urlsplit(handler.path)
        key, query = unquote(path.path).removeprefix(f"/{NAME}").lstrip("/"), dict(parse_qsl(path.query, True))
        status, found = self.reply_to(handler.command, key, query, handler.body)
        first, _, last = handler.headers.get("Range", "").removeprefix("bytes=").partition("-")
        part = found[int(first or 0) : int(last) + 1 if last else None]
        return Answer(part, 206 if first else status, {"ETag": '"1"'})

    def reply_to(self, method: str, key: str, query: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Return the status and body of a reply."""
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


run_bucket = Bucket


def _join_chunks(file: BinaryIO) -> bytes:
    """Return the joined content of the chunks, and read the trailer after the last one."""
    parts = []
    while size := int(file.readline().partition(b";")[0], 16):
        parts.append(file.read(size))
        file.readline()
    while file.readline().strip():
        pass
    return b"".join(parts)
