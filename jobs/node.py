"""Finds Raydex's missing requirements in a Python; as a program, checks the nodes of a Ray job.

Runs on nodes that have Ray and nothing of ours. It imports only packages that come with Ray, inside functions, so that
it can report even a Python without Ray. As a program it exits with 0, or prints the missing packages and exits with
LACKING.
"""

import logging
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

REQUIREMENTS = Path("requirements.txt")  # in the working directory of the job
LACKING = 78  # EX_CONFIG of sysexits.h: no verb of `raydex` exits with it


def walk_requirements(lines: Iterable[str]) -> "Iterator[tuple[Requirement, str | None]]":
    """Yield each requirement, and the requirements of installed packages in turn, with the installed version.

    The version is None if the package is missing. Requirements for another platform or Python are skipped.
    """
    from packaging.requirements import Requirement

    waiting, seen = [Requirement(line) for line in lines], set()
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:
            yield wanted, None
            continue
        yield wanted, found.version
        needed = map(Requirement, found.requires or ())
        waiting += [each for each in needed if _is_for(each, wanted.extras)]


def _is_for(requirement: "Requirement", extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return not marker or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def list_lacking(lines: Iterable[str]) -> list[str]:
    """Return which of these requirements, and of their own requirements, this Python does not satisfy."""
    return sorted(
        str(wanted)
        for wanted, version in walk_requirements(lines)
        if version is None or not wanted.specifier.contains(version, prereleases=True)
    )


def list_lacking_on_nodes(lines: list[str]) -> list[str]:
    """Return the packages that this node lacks, or else any other living node. Uses none of their CPUs."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if lacking := list_lacking(lines):
        return lacking
    ray.init(log_to_driver=False, logging_level=logging.ERROR)
    here = ray.get_runtime_context().get_node_id()
    others = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeID"] != here]
    check = ray.remote(num_cpus=0)(list_lacking)
    places = [NodeAffinitySchedulingStrategy(node, soft=True) for node in others]
    found = ray.get([check.options(scheduling_strategy=place).remote(lines) for place in places])
    return next(filter(None, found), [])


def check_nodes() -> int:
    """Print the missing packages, and return the exit code."""
    try:
        lacking = list_lacking_on_nodes(REQUIREMENTS.read_text().splitlines())
    except ImportError as error:  # this Python does not even have Ray
        lacking = [error.name or str(error)]
    if lacking:
        print(
            f"the nodes lack {len(lacking)} package{'s' if len(lacking) > 1 else ''}: "
            f"{', '.join(lacking[:3])}{', …' if len(lacking) > 3 else ''}"
        )
    return LACKING if lacking else 0


if __name__ == "__main__":
    sys.exit(check_nodes())
