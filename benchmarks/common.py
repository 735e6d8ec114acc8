"""Shares code among benchmarks: flags, data, alternating rounds, machine and version names, output.

parser = common.arguments(__doc__)                       # --quick --home --json --write
args = common.parse(parser, "retrieval")                 # fails immediately if the page has no markers
folder = common.ray_docs(args.home)                      # the pages, unpacked once; skipped without the data
rounds = common.interleave({"ours": ours, "theirs": theirs}, count=5)
common.report(args, "retrieval", table, figures, packages=["onnxruntime"])
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.tables import check_place, write_table
from pipelines import embedded
from pipelines.indexing.collection import AUTO
from pipelines.store import NoLiveIndex, Store

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RAYDEX_DATA", ROOT.parent / "shared" / "data"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "raydex-bench"
ARCHIVE, BASE_URL = "ray-docs-html.tar.xz", "https://docs.ray.io/en/master/"
# The exit code of a benchmark that cannot run here, as for a skipped test in Automake.
SKIPPED = 77
# CPU features that an encoder can use, as spelled in /proc/cpuinfo and by people.
FEATURES = {
    "avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "VNNI", "avx512_bf16": "BF16", "amx_int8": "AMX int8",
    "amx_bf16": "AMX BF16", "asimd": "NEON", "sve": "SVE",
}  # fmt: skip


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the flags of all benchmarks."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds on little data: does it run at all?")
    parser.add_argument("--home", type=Path, default=CACHE, help="folder of the database, models and pages")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table between its marks in this page")
    return parser


def parse(parser: argparse.ArgumentParser, *names: str) -> argparse.Namespace:
    """Return the arguments. Exit if the page to write has no markers for the tables `names`."""
    args = parser.parse_args()
    for name in names if args.write else ():
        check_place(args.write, name)
    print(f"{machine()}; {_cpu()}", file=sys.stderr)
    return args


def cannot_run(reason: str) -> NoReturn:
    """Exit as skipped, with the reason as the last line."""
    print(f"skipped: {reason}", file=sys.stderr, flush=True)
    sys.exit(SKIPPED)


def data(name: str) -> Path:
    """Return the path of a data file. Without it, the benchmark is skipped."""
    if not (DATA / name).exists():
        cannot_run(f"{DATA / name} is absent: set RAYDEX_DATA")
    return DATA / name


# ---------------------------------------------------------------------------------------------- corpus


def ray_docs(home: Path, count: int | None = None) -> Path:
    """Return the folder with the Ray documentation's pages, unpacked once.

    `count` takes every n-th page, and excludes listings.
    """
    folder = home / ("ray-docs" if count is None else f"ray-docs-{count}")
    if not folder.exists():
        making = folder.with_name(f"{folder.name}.part")
        with tarfile.open(data(ARCHIVE)) as archive:
            members = [m for m in archive.getmembers() if m.isfile() and m.name.startswith("en/master/")]
            if count is not None:
                members = [m for m in members if m.name.endswith(".html") and "_modules/" not in m.name]
                members = members[:: max(1, len(members) // count)][:count]
            archive.extractall(making, members=members, filter="data")
        (making / "en" / "master").rename(folder)
    return folder


@contextmanager
def indexed_ray_docs(home: Path, collection: str = "raydocs", model: str = AUTO) -> Iterator[str]:
    """Yield the database URL of `home` with the whole Ray documentation in `collection`, indexing it the first time.

    `model` is the embedding model for indexing.
    """
    home.mkdir(parents=True, exist_ok=True)
    with embedded.run_postgres(home) as url:
        with Store(url, retry_s=10) as store:
            store.migrate()
            try:
                store.live_index(collection)
            except NoLiveIndex:
                _index(home, collection, model)
        yield url


def _index(home: Path, collection: str, model: str) -> None:
    print(f"indexing the Ray documentation into {home} (some minutes, once)", file=sys.stderr, flush=True)
    where = ["--collection", collection, "--path", str(ray_docs(home)), "--base-url", BASE_URL, "--model", model]
    subprocess.run(
        [sys.executable, "-m", "jobs", "index", *where],
        env={**os.environ, "RAYDEX_HOME": str(home), "PYTHONPATH": str(ROOT)},
        stdout=sys.stderr,
        check=True,
    )


# ---------------------------------------------------------------------------------------------- rounds


def interleave(ways: Mapping[str, Callable[[], Any]], count: int) -> dict[str, list[Any]]:
    """Call each function once per round, in turn, and return each one's results by round.

    Every second round goes in reverse order, so that no function always runs after the same other one.
    """
    found: dict[str, list[Any]] = {name: [] for name in ways}
    for number in range(count):
        for name in list(ways) if number % 2 == 0 else reversed(ways):
            found[name].append(ways[name]())
    return found


def seconds(work: Callable[[], Any]) -> float:
    """Return the duration of a call in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median of the ratios within each round."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


# ---------------------------------------------------------------------------------------------- output


def machine() -> str:
    """Return the machine's properties that affect the figures: cores, CPU features, memory."""
    flags = next((line for line in _cpuinfo() if line.startswith(("flags", "Features"))), "").split()
    features = ", ".join(name for flag, name in FEATURES.items() if flag in flags) or "CPU without known features"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores, {features}, {memory:.0f} GB"


def versions(packages: Sequence[str]) -> str:
    """Return the installed version of each package."""
    return ", ".join(f"{name} {_version(name)}" for name in packages)


def report(
    args: argparse.Namespace, name: str, table: str, figures: Mapping[str, Any], packages: Sequence[str] = ()
) -> None:
    """Print the table with machine and versions. On request, write it into the page, and the figures as JSON."""
    python = f"Python {sys.version.split()[0]}"
    made = f"{machine()}; {', '.join(filter(None, [python, versions(packages)]))}"
    text = f"{table.strip()}\n\nMeasured by `python -m benchmarks.{Path(sys.argv[0]).stem}` on {made}.\n"
    print(text, flush=True)
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n", encoding="utf-8")
    if args.write:
        write_table(args.write, name, text)


def _version(package: str) -> str:
    try:
        return version(package).split("+")[0]
    except PackageNotFoundError:
        return "absent"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _cpu() -> str:
    return next((line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), "unknown CPU")
