"""Tells a Raydex service which documentation pages a push changed; needs only Python and git.

    python3 announce_changes.py BEFORE AFTER

Copy it into the documentation's repository, as described in raydex.yaml next to it. BEFORE and AFTER are commits.
Variables: RAYDEX_URL (https://ask.example.com), RAYDEX_COLLECTION, RAYDEX_SECRET (printed by `raydex keys secret
COLLECTION`), DOCS_FOLDER (docs), DOCS_URL (where that folder is published), DOCS_URL_STYLE (directory): like the
collection's `--url-style`, keep (.md), html, directory (guide/) or bare (guide), DOCS_INDEXES (index readme): files
published as their folder.
"""

import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# Files in other formats are not pages. Generators turn SOURCES into HTML and publish them under another name.
SOURCES, OTHERS = ("md", "markdown", "mdx", "rst", "rest", "ipynb"), ("html", "htm", "xhtml", "pdf", "txt", "text")
PAUSES_S = (0.3, 4, 15, 0)  # after each attempt that did not reach the service
MOST = 1000  # maximum changed pages, and maximum deleted pages, per announcement
ENDINGS = {"html": ".html", "directory": "/", "bare": ""}


def url_of(path: str, base: str, style: str, indexes: "list[str]") -> "str | None":
    """Return the URL at which `path`, relative to the documentation folder, is published; None if it is not a page."""
    stem, _, suffix = path.rpartition(".")
    folder, _, name = stem.rpartition("/")
    if not stem or any(part.startswith(".") for part in path.split("/")) or suffix.lower() not in SOURCES + OTHERS:
        return None
    if style != "keep" and suffix.lower() in SOURCES:
        prefix = folder + "/" if folder else ""
        path = prefix if name.lower() in indexes else prefix + name + ENDINGS[style]
    return base.rstrip("/") + "/" + urllib.parse.quote(path, safe="/~!$&'()*+,;=:@-._")


def changed_files(before: str, after: str, folder: str) -> "tuple[list[str], list[str]]":
    """Return the files below `folder` that differ between two commits: changed or new ones, and deleted ones."""
    git = ["git", "diff", "--name-status", "--no-renames", "--relative=" + folder, "-z", before, after, "--"]
    done = subprocess.run(git, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"git can't compare {before} with {after}: is the first one in this clone (fetch-depth: 0)?")
    found = done.stdout.decode("utf-8", "replace").split("\0")[:-1]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    return [path for state, path in pairs if state != "D"], [path for state, path in pairs if state == "D"]


def send(url: str, secret: str, body: bytes) -> "dict[str, object]":
    """Send an announcement, and repeat it while the service can't be reached. Raises URLError."""
    now = str(int(time.time()))
    signature = hmac.new(secret.encode(), now.encode() + b"." + body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Raydex-Timestamp": now,
        "X-Raydex-Signature": "sha256=" + signature,
    }
    for pause in PAUSES_S:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as reply:
                return json.load(reply)
        except urllib.error.URLError as error:
            if not pause or getattr(error, "code", 503) not in (429, 502, 503, 504):
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def main(before: str, after: str) -> int:
    """Announce the differences between two commits; return the exit code."""
    given = os.environ.get
    style = given("DOCS_URL_STYLE") or "directory"
    if style != "keep" and style not in ENDINGS:
        sys.exit(f"DOCS_URL_STYLE is {style!r}: use keep, {', '.join(ENDINGS)}")
    missing = [name for name in ("RAYDEX_URL", "RAYDEX_COLLECTION", "RAYDEX_SECRET", "DOCS_URL") if not given(name)]
    if missing:
        sys.exit(f"{', '.join(missing)} must be set: see the first lines of {sys.argv[0]}")
    if not re.search("[1-9a-f]", before):
        print("the first push of a branch has nothing to compare with: run `raydex index` instead")
        return 0
    indexes = (given("DOCS_INDEXES") or "index readme").split()
    pages = [
        sorted({url for path in files if (url := url_of(path, os.environ["DOCS_URL"], style, indexes))})
        for files in changed_files(before, after, (given("DOCS_FOLDER") or "docs").strip("/") + "/")
    ]
    changed, deleted = pages[0], [url for url in pages[1] if url not in pages[0]]
    name = urllib.parse.quote(os.environ["RAYDEX_COLLECTION"])
    to = f"{os.environ['RAYDEX_URL'].rstrip('/')}/v1/collections/{name}/changes"
    for first in range(0, max(len(changed), len(deleted)), MOST):
        part = {"changed": changed[first : first + MOST], "deleted": deleted[first : first + MOST]}
        try:
            reply = send(to, os.environ["RAYDEX_SECRET"], json.dumps(part).encode())
        except urllib.error.HTTPError as error:
            sys.exit(f"{to} answers {error.code}: {error.read().decode('utf-8', 'replace')}")
        except urllib.error.URLError as error:
            sys.exit(f"{to} can't be reached: {error.reason}")
        print(f"announced as {reply['id']}: {len(part['changed'])} changed, {len(part['deleted'])} deleted")
    if not (changed or deleted):
        print("no page was changed")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
