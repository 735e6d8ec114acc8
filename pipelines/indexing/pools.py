"""How much of a cluster each stage takes, decided before anything starts so that nothing waits for ever.

Knows nodes as mappings of free resources (`{"CPU": 8.0, "GPU": 1.0}`). Knows no Ray and starts nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Node = Mapping[str, float]

# Threads of an embedding actor on CPUs: a small encoder gains little from more.
THREADS = 4
# Reading, sectioning and chunking cost a fiftieth of embedding on CPUs (1.8 ms to 81 ms a chunk, Ray's docs, MiniLM,
# one core); storing as much again.
READING_SHARE = 1 / 20
# Free CPUs that a node needs to take part: below that, sharing one core would only slow everything.
LEAST_CPUS = 0.5
# A crawling or storing task waits more than it works: this share of a reading task's CPUs.
LIGHT = 0.2
# Fewer, larger actors are worth a tenth of the CPUs: each loads the model into its own memory.
NEARLY = 0.9
_ROUNDING = 1e-6


class ClusterTooSmall(RuntimeError):
    """No node has room for one embedding actor and one reading task; nothing was started."""


class ImpossiblePool(ValueError):
    """An actor pool was asked for that no cluster can hold."""


@dataclass(frozen=True, slots=True)
class Pools:
    """What the stages take of the cluster.

    `embedders` actors with `cpus`, `threads` and `gpus` each; `task_cpus` of a reading task, `light_cpus` of one that
    crawls or stores; at most `crawls` hosts crawled at once. All of that together fits the free resources.
    """

    embedders: int
    cpus: float
    threads: int
    gpus: float
    task_cpus: float
    light_cpus: float
    crawls: int


def plan_pools(nodes: Sequence[Node], embedders: int | None = None, gpus: float = 1.0) -> tuple[Pools, str]:
    """Pools that the free resources of `nodes` can hold, and a message if that is less than was asked for.

    `embedders` None takes as many as fit. With GPUs every actor takes `gpus` of one (a fraction shares it), else up
    to 4 CPUs. Raises ClusterTooSmall, ImpossiblePool.
    """
    _check_asked(embedders, gpus)
    usable = [node for node in nodes if node.get("CPU", 0.0) >= LEAST_CPUS]
    if not usable:
        free = ", ".join(f"{node.get('CPU', 0.0):g}" for node in nodes) or "none"
        raise ClusterTooSmall(
            f"the cluster's nodes have {free} CPUs free, one with at least {LEAST_CPUS:g} is needed: "
            "wait for other work to end, add a node, or run without RAY_ADDRESS on this machine alone"
        )
    slots = [gpu_slots(node.get("GPU", 0.0), gpus) for node in usable]
    if any(slots):
        return _fit(usable, slots, _cpus_beside_gpus(usable, slots), gpus, embedders)
    cpus = _cpus_of_actor(usable)
    slots = [int(_room(node) / cpus + _ROUNDING) for node in usable]
    pools, message = _fit(usable, slots, cpus, 0.0, embedders)
    if any(node.get("GPU", 0.0) for node in nodes):
        message = f"no node has {gpus:g} of a GPU and a CPU free: embedding on CPUs. {message}".rstrip()
    return pools, message


def gpu_slots(free: float, each: float) -> int:
    """How many actors with `each` GPUs fit on a node with `free` ones; a fraction comes from one single GPU."""
    if each >= 1:
        return int(free / each + _ROUNDING)
    whole, part = divmod(free, 1.0)
    return int(whole) * int(1 / each + _ROUNDING) + int(part / each + _ROUNDING)


def _check_asked(embedders: int | None, gpus: float) -> None:
    if embedders is not None and embedders < 1:
        raise ImpossiblePool(f"{embedders} embedding actors: at least 1 is needed")
    if gpus <= 0 or (gpus > 1 and gpus != int(gpus)):
        raise ImpossiblePool(f"{gpus:g} GPUs for each embedding actor: give a fraction of one, or a whole number")


def _fit(
    nodes: Sequence[Node], slots: Sequence[int], cpus: float, gpus: float, embedders: int | None
) -> tuple[Pools, str]:
    """Pools with at most one actor a slot.

    Wherever Ray puts the actors, some node keeps as much free as the poorest has left: tasks are cut to fit there.
    """
    most = sum(slots)
    actors = min(embedders or most, most)
    left = min(node["CPU"] - taken * cpus for node, taken in zip(nodes, slots, strict=True))
    task = min(1.0, left / 2)
    light = task * LIGHT
    crawls = int((left - task - light) / light + _ROUNDING)
    threads = min(THREADS, int(cpus) + 1)  # the CPU kept for reading is idle most of the time
    wanted = embedders or most
    message = f"{wanted} embedding actors do not fit the free resources: using {actors}" if actors < wanted else ""
    return Pools(actors, cpus, threads, gpus, task, light, crawls), message


def _room(node: Node) -> float:
    """CPUs of a node that embedding may take; the others read, crawl and store."""
    cpus = node["CPU"]
    return cpus - max(min(1.0, cpus / 2), cpus * READING_SHARE)


def _cpus_of_actor(nodes: Sequence[Node]) -> float:
    """The largest size up to THREADS that uses nearly as many CPUs of all nodes as any: every actor holds a model."""
    rooms = [_room(node) for node in nodes]
    sizes = [room / math.ceil(room / THREADS) for room in rooms]
    used = {size: size * sum(int(room / size + _ROUNDING) for room in rooms) for size in sizes}
    return max(size for size in sizes if used[size] >= NEARLY * max(used.values()))


def _cpus_beside_gpus(nodes: Sequence[Node], slots: Sequence[int]) -> float:
    """CPUs of an actor whose work is on a GPU: one, or what the fullest node can give each."""
    return min(1.0, *(_room(node) / taken for node, taken in zip(nodes, slots, strict=True) if taken))
