"""Measures nights over a site that changes a little each day: duration, embedded texts, and growth of the database.

    python -m benchmarks.nights [--pages 150] [--nights 35] [--share 0.02] [--model NAME]

Serves a site of real articles on loopback. Before each night, `--share` of its pages are rewritten (one of them is
replaced by another page), and before every tenth night a tenth of them, so that a night with a judged candidate is
included. Then one day passes for time-limited data in the database, and readers have asked a hundred questions. Each
night is `raydex nightly` with all upkeep that a collection file can configure.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import yaml
from psycopg import sql

from benchmarks import common
from benchmarks.tables import as_table
from pipelines import embedded
from pipelines.store import RecordedQuestion, Store

NAME = "nightsite"
ASKED, RELEASE_EVERY, RELEASE_SHARE = 100, 10, 0.1
NIGHT = {"prune": 1, "retention_days": 7, "vacuum": True, "dump": {"folder": "dumps", "keep": 5}}
SHOWN = ("chunks", "page", "run", "question", "evaluated_question")  # tables
# Time-limited data in the database. Moving its dates back simulates a day.
DATED = {"run": ("started", "ended"), "publication": ("published_at",), "question": ("asked_at",)}
ARTICLE, LINK = re.compile(r"<section id=.*</section>", re.DOTALL), re.compile(r'\shref="[^"]*"')
SHORTEST = 2_000  # characters of an article: shorter ones are stubs


class Site:
    """Articles as pages of a folder. Articles beyond the first `count` wait to replace one."""

    def __init__(self, folder: Path, source: Path, count: int) -> None:
        found = [ARTICLE.search(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.html"))]
        articles = [LINK.sub("", match[0]) for match in found if match and len(match[0]) >= SHORTEST]
        self.folder, self.random = folder, random.Random(7)
        self.pages = {f"p{number:04}": text for number, text in enumerate(articles[:count])}
        self.waiting = {f"p{count + number:04}": text for number, text in enumerate(articles[count:])}
        for name in self.pages:
            self._write(name)
        self._write_index()

    def change(self, share: float, night: int) -> int:
        """Rewrite that many pages, and replace one with a waiting page. Return the number of new or changed pages."""
        names = self.random.sample(sorted(self.pages), max(2, round(share * len(self.pages))))
        gone, new = names.pop(), next(iter(self.waiting))
        (self.folder / f"{gone}.html").unlink()
        self.waiting[f"{gone}n{night}"] = self.pages.pop(gone)
        self.pages[new] = self.waiting.pop(new)
        for name in names:
            parts = self.pages[name].split("</p>")
            place = self.random.randrange(len(parts))
            parts[place] += f" Since release {night} this also holds for {self.random.choice(sorted(self.pages))}."
            self.pages[name] = "</p>".join(parts)
        for name in (*names, new):
            self._write(name)
        self._write_index()
        return len(names) + 1

    def _write(self, name: str) -> None:
        html = f"<html><head><title>{name}</title></head><body><main>{self.pages[name]}</main></body></html>"
        (self.folder / f"{name}.html").write_text(html, encoding="utf-8")

    def _write_index(self) -> None:
        links = "".join(f'<li><a href="{name}.html">{name}</a></li>' for name in sorted(self.pages))
        (self.folder / "index.html").write_text(f"<html><body><h1>All pages</h1><ul>{links}</ul></body></html>")


class Quiet(SimpleHTTPRequestHandler):
    """A static site without logging."""

    def log_message(self, *_: object) -> None: ...

    def handle(self) -> None:
        with suppress(ConnectionError):  # a browser does not wait for its icon
            super().handle()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a folder's files, served with Last-Modified."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def one_night(file: Path, home: Path) -> dict[str, Any]:
    """Run `raydex nightly` and return its summary. Exits if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "jobs", "nightly", str(file), "--no-ray", "--json"],
        env={**os.environ, "RAYDEX_HOME": str(home), "PYTHONPATH": str(common.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"a night ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def pass_a_day(url: str) -> None:
    """Move the database's time-limited data a day back, and record questions of the last day."""
    with psycopg.connect(url, autocommit=True) as connection:
        for table, columns in DATED.items():
            moved = sql.SQL(", ").join(
                sql.SQL("{0} = {0} - interval '1 day'").format(sql.Identifier(column)) for column in columns
            )
            connection.execute(sql.SQL("update {} set {}").format(sql.Identifier(table), moved))
    with Store(url) as store:
        asked = [RecordedQuestion(os.urandom(8).hex(), f"How do I do {n}?", collection=NAME) for n in range(ASKED)]
        store.record_questions(asked)


def sizes(url: str, dumps: Path) -> dict[str, Any]:
    """Return the bytes of the database and the dumps, and each table's rows. Chunk tables count as one."""
    with psycopg.connect(url) as connection:
        (size,) = connection.execute("select pg_database_size(current_database())").fetchone() or (0,)
        names = connection.execute("select relname::text from pg_stat_user_tables order by 1").fetchall()
        rows: dict[str, int] = {}
        for (name,) in names:
            counted = sql.SQL("select count(*) from {}").format(sql.Identifier(name))
            (count,) = connection.execute(counted).fetchone() or (0,)
            key = "chunks" if name.startswith("chunk_") else name
            rows[key] = rows.get(key, 0) + count
    stored = [path.stat().st_size for path in dumps.iterdir()]
    return {"database": size, "dumps": sum(stored), "dumps_kept": len(stored), "rows": rows}


def measure(args: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Run the nights in `folder` and return each one's figures."""
    home, pages, dumps, file = folder / "home", folder / "pages", folder / "dumps", folder / "site.yaml"
    pages.mkdir()
    dumps.mkdir()
    site = Site(pages, common.ray_docs(args.home, 4 * args.pages), args.pages)
    nights = []
    with served(pages) as address, embedded.run_postgres(home) as url:
        values = {"name": NAME, "sites": [{"start_urls": [address], "allow_private": True}], "night": NIGHT}
        file.write_text(yaml.safe_dump(values | ({"index": {"model": args.model}} if args.model else {})))
        for night in range(args.nights):
            share = RELEASE_SHARE if night % RELEASE_EVERY == RELEASE_EVERY - 1 else args.share
            changed = site.change(share, night) if night else args.pages
            began = time.perf_counter()
            summary = one_night(file, home)
            figures = {"night": night + 1, "pages": changed, "seconds": time.perf_counter() - began,
                       "embedded": summary["index"]["chunks"]["embedded"], "publish": summary["steps"]["publish"],
                       "steps": summary["steps"], **sizes(url, dumps)}  # fmt: skip
            print(json.dumps(figures), file=sys.stderr, flush=True)
            nights.append(figures)
            pass_a_day(url)
    return nights


def as_row(figures: dict[str, Any]) -> list[str]:
    """Return a night's row."""
    sizes = (f"{figures[what] / 1e6:.1f}" for what in ("database", "dumps"))
    rows = (f"{figures['rows'][table]:,}" for table in SHOWN)
    return [str(figures["night"]), f"{figures['pages']:,}", f"{figures['seconds']:.0f}", f"{figures['embedded']:,}",
            *sizes, *rows]  # fmt: skip


def is_shown(night: int) -> bool:
    """Return whether the table shows this night. The JSON has all of them."""
    return night <= 2 or night % 5 == 0


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--nights", type=int, default=35)
    parser.add_argument("--share", type=float, default=0.02, help="share of pages that change before each night")
    parser.add_argument("--model", default="", help="embedding model (default: that of a new index)")
    args = common.parse(parser, "nights")
    if args.quick:
        args.pages, args.nights, args.model = 20, 4, "hash:256"
    with TemporaryDirectory(prefix="raydex-nights-") as folder:
        nights = measure(args, Path(folder))
    head = ["night", "pages changed", "s", "vectors embedded", "database, MB", "dumps, MB", *SHOWN]
    rows = [as_row(night) for night in nights if is_shown(night["night"])]
    common.report(args, "nights", as_table(head, rows), {"nights": nights})


if __name__ == "__main__":
    main()
