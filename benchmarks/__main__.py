"""Runs all benchmarks one after another and writes their tables: `make bench`.

    python -m benchmarks [NAME …] [--without NAME …] [--quick] [--home DIR] [--sizes 10k,100k,1m]

A benchmark that lacks its data or a package is skipped with the reason; one that fails does not stop the others, but
the exit code is then 1. Ends with a summary: what was done, and how long it took.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = 77


@dataclass(frozen=True)
class Benchmark:
    """A table, the module that writes it, the module's flags, and the page."""

    table: str
    module: str
    flags: tuple[str, ...] = ()
    page: str = "docs/benchmarks.md"


BENCHMARKS = (
    Benchmark("encoder", "embedding"),
    Benchmark("indexing", "indexing"),
    Benchmark("reading", "reading_html", page="benchmarks/results/reading-html.md"),
    Benchmark("sources", "reading_sources", page="benchmarks/results/reading-sources.md"),
    Benchmark("retrieval", "retrieval"),
    Benchmark("several", "several"),
    Benchmark("load", "load"),
    Benchmark("serve", "answering_serve"),
    Benchmark("peers", "peers"),
    Benchmark("nights", "nights", page="benchmarks/results/nights.md"),
    Benchmark("scale", "scale", page="benchmarks/results/scale.md"),
    Benchmark("tags", "tags", page="benchmarks/results/trained-kinds.md"),
)


@dataclass(frozen=True)
class Outcome:
    """How a benchmark ended: `done`, `skipped` or `FAILED`, the reason, and its seconds."""

    table: str
    state: str
    reason: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.table:10} {self.state:8} {self.seconds / 60:5.1f} min  {self.reason}".rstrip()


def run_benchmark(benchmark: Benchmark, more: list[str]) -> Outcome:
    """Run a benchmark in its own process, pass its output on, and return how it ended."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark.module}", *benchmark.flags, *more]
    command += ["--write", str(ROOT / benchmark.page)]
    print(f"\n== {benchmark.table}", flush=True)
    began, last = time.perf_counter(), ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip() or last
    state = {0: "done", SKIPPED: "skipped"}.get(process.returncode, "FAILED")
    reason = {"done": "", "skipped": last.removeprefix("skipped: ")}.get(state, f"exit code {process.returncode}")
    return Outcome(benchmark.table, state, reason, time.perf_counter() - began)


def run_all(benchmarks: list[Benchmark], more: list[str]) -> int:
    """Run them in turn, print the summary and return the exit code."""
    outcomes = [run_benchmark(benchmark, more) for benchmark in benchmarks]
    print("\n== summary", *outcomes, sep="\n")
    print(f"{sum(outcome.seconds for outcome in outcomes) / 60:.0f} min in all")
    return int(any(outcome.state == "FAILED" for outcome in outcomes))


def main() -> int:
    names = [benchmark.table for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tables", nargs="*", metavar="NAME", help=f"only these of {', '.join(names)}")
    parser.add_argument("--without", nargs="+", choices=names, default=[], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="few rounds on little data")
    parser.add_argument("--home", help="folder of the database, models and pages")
    parser.add_argument("--sizes", help="numbers of chunks of the table scale, such as 10k,100k,1m")
    args = parser.parse_args()
    if unknown := set(args.tables) - set(names):
        parser.error(f"there is no table {', '.join(sorted(unknown))}: choose from {', '.join(names)}")
    chosen = [b for b in BENCHMARKS if b.table in (args.tables or names) and b.table not in args.without]
    if args.sizes:
        chosen = [replace(b, flags=("--sizes", args.sizes)) if b.table == "scale" else b for b in chosen]
    return run_all(chosen, ["--quick"] * args.quick + (["--home", args.home] if args.home else []))


if __name__ == "__main__":
    sys.exit(main())
