"""Pages as they are fetched and read, and the hashes that identify texts."""

import hashlib
from dataclasses import dataclass

# Raise it whenever reading, sectioning or chunking yields other text or anchors for the same bytes. It is part of an
# index's fingerprint, so the next run rebuilds from the stored pages.
SECTIONING_VERSION = 18


def digest(*parts: str | bytes) -> str:
    """Return 128 bits of SHA-256 over length-prefixed `parts`, as 32 hex characters."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "big"))
        sha.update(data)
    return sha.hexdigest()[:32]


def content_hash(body: bytes, content_type: str, charset: str | None) -> str:
    """Return the hash that shows whether a page has changed: over its bytes and how to read them."""
    return digest(body, content_type, charset or "")


@dataclass(frozen=True, slots=True)
class Page:
    """One fetched document: its URL and its raw bytes.

    `content_type` is the media type without parameters, `charset` the one that the server declared, if any.
    """

    url: str
    body: bytes
    content_type: str = "text/html"
    charset: str | None = None
