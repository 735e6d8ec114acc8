"""Plans the share of a cluster for each stage before anything starts, and how far it may grow.

The plan prevents a stage from waiting forever for resources. Nodes are mappings of free resources (`{"CPU": 8.0, "GPU":
1.0}`). This module knows no Ray and starts nothing.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.text.counts import counted

Node = Mapping[str, float]

# Threads of an embedding actor on CPUs: a small encoder gains little from more.
THREADS = 4
# Reading, sectioning and chunking cost a fiftieth of embedding on CPUs (1.8 ms and 81 ms per chunk, Ray's docs, MiniLM,
# one core); storing costs the same again.
READING_SHARE = 1 / 20
# Free CPUs that a node needs to take part. Ray only counts them. A run has low priority on its nodes, so a small share
# next to a service costs the service nothing. Less than this is the remainder of a single task of another run.
LEAST_CPUS = 0.2
# A crawling or storing task mostly waits: it takes this share of a reading task's CPUs.
LIGHT = 0.2
# A tenth of the CPUs may stay unused for fewer, larger actors, because each actor loads the model into its own memory.
NEARLY = 0.9
# Work of more pages than this is left to actors if several have room, or a Ray is given: an actor that dies is
# replaced, and the run continues.
HERE_PAGES = 800
# Bytes of pages (compressed) that one embedder finishes while Ray and its actors start: 12 s, 85 texts a second, 1,650
# bytes a text (Ray's docs, MiniLM in int8, 2 threads; in fp32 a third).
BYTES_PER_START = 1_700_000
GPUS_PER_EMBEDDER = 1.0
# Embedding actors of a run on a cluster that grows: Postgres can store the vectors of far more.
MAX_EMBEDDERS = 64
# A node takes minutes to start: none is requested for work that ends before.
FINISH_IN_S = 600.0
_ROUNDING = 1e-6


class ClusterTooSmall(RuntimeError):
    """No node has room for an embedding actor and a reading task; nothing was started.

    `holders` says who holds the CPUs, and how to free them.
    """

    def __init__(self, nodes: Sequence[Node], holders: str = "") -> None:
        free = ", ".join(f"{node.get('CPU', 0.0):g}" for node in nodes) or "none"
        super().__init__(
            f"CPUs free on the cluster's nodes: {free}. A run needs {LEAST_CPUS:g} on one of them"
            + (f". {holders}. " if holders else ": wait for other work to end, add a node, ")
            + ("Or embed in the process of the command: --no-ray" if holders else "or use --no-ray")
        )


class ImpossiblePool(ValueError):
    """No cluster has room for the requested actor pool."""


@dataclass(frozen=True, slots=True)
class Pools:
    """The resources of the stages; together they fit the free resources.

    There are `embedders` actors with `cpus`, `threads` and `gpus` each, and up to `most` if nodes join. A run on
    several nodes continues with `least`. A reading task takes `task_cpus`, one that crawls or stores `light_cpus`. At
    most `tasks` read, and as many store (None: as many as fit). At most `crawls` hosts are crawled at once.
    """

    least: int
    embedders: int
    most: int
    cpus: float
    threads: int
    gpus: float
    task_cpus: float
    light_cpus: float
    tasks: int | None
    crawls: int


def plan_pools(
    nodes: Sequence[Node],
    embedders: int | None = None,
    gpus: float = GPUS_PER_EMBEDDER,
    max_embedders: int = MAX_EMBEDDERS,
) -> tuple[Pools, str]:
    """Return pools that fit the free resources of `nodes`, and a message if they are smaller than requested.

    `embedders` None starts as many as fit, and up to `max_embedders` as nodes join; a number is fixed. With GPUs, every
    actor takes `gpus` of one (a fraction shares it), otherwise up to 4 CPUs. Raises ClusterTooSmall, ImpossiblePool.
    """
    check_request(embedders, gpus)
    check_request(max_embedders, gpus)
    usable = [node for node in nodes if has_room([node])]
    if not usable:
        raise ClusterTooSmall(nodes)
    slots = [count_gpu_slots(node.get("GPU", 0.0), gpus) for node in usable]
    if any(slots):
        cpus = min(1.0, *(_room(node) / taken for node, taken in zip(usable, slots, strict=True) if taken))
        return _fit(usable, slots, cpus, gpus, embedders, max_embedders)
    cpus = _cpus_of_actor(usable)
    slots = [int(_room(node) / cpus + _ROUNDING) for node in usable]
    pools, message = _fit(usable, slots, cpus, 0.0, embedders, max_embedders)
    if any(node.get("GPU", 0.0) for node in nodes):
        message = f"no node has {gpus:g} of a GPU and a CPU free: embedding on CPUs. {message}".rstrip()
    return pools, message


def has_room(nodes: Sequence[Node]) -> bool:
    """Return whether a node has enough CPUs to take part."""
    return any(node.get("CPU", 0.0) >= LEAST_CPUS - _ROUNDING for node in nodes)


def held_by_others(total: Node, free: Iterable[Node]) -> Node:
    """Return the CPUs and GPUs of a cluster's `total` that others, such as a service, hold.

    `free` are the free resources of its nodes.
    """
    nodes = list(free)
    return {
        name: max(0.0, total.get(name, 0.0) - sum(node.get(name, 0.0) for node in nodes)) for name in ("CPU", "GPU")
    }


def plan_local(cpus: int) -> Pools:
    """Return the pools of a run in one process that may use `cpus` CPUs."""
    return Pools(1, 1, 1, cpus, min(THREADS, cpus), gpus=0.0, task_cpus=0.0, light_cpus=0.0, tasks=None, crawls=0)


def is_little(pages: int, size: int, cpus: float) -> bool:
    """Return whether one process embeds `pages` of `size` bytes faster than actors on `cpus` CPUs.

    With one actor, that is always true: Ray takes CPUs from it. With n actors, it is true up to n / (n - 1) of the work
    that one embedder does while they start. `cpus` is infinite for a GPU, and for a cluster that has room.
    """
    actors = cpus if math.isinf(cpus) else plan_pools([{"CPU": float(cpus)}])[0].embedders
    return actors == 1 or (pages <= HERE_PAGES and size * (1 - 1 / actors) <= BYTES_PER_START)


def count_gpu_slots(free: float, each: float) -> int:
    """Return how many actors with `each` GPUs fit on a node with `free` ones; a fraction comes from a single GPU."""
    if each >= 1:
        return int(free / each + _ROUNDING)
    whole, part = divmod(free, 1.0)
    return int(whole) * int(1 / each + _ROUNDING) + int(part / each + _ROUNDING)


def check_request(embedders: int | None, gpus: float = GPUS_PER_EMBEDDER) -> None:
    """Raise ImpossiblePool for a pool that no cluster has room for."""
    if embedders is not None and embedders < 1:
        raise ImpossiblePool(f"{counted(embedders, 'embedding actor')}: at least 1 is needed")
    if gpus <= 0 or (gpus > 1 and gpus != int(gpus)):
        raise ImpossiblePool(
            f"{counted(gpus, 'GPU')} for each embedding actor: give a fraction of one, or a whole number"
        )


def _fit(
    nodes: Sequence[Node], slots: Sequence[int], cpus: float, gpus: float, embedders: int | None, max_embedders: int
) -> tuple[Pools, str]:
    """Return pools with at most one actor per slot.

    However Ray places the actors, some node keeps at least as many free CPUs as the fullest node would. The size of
    tasks fits these.
    """
    room = sum(slots)
    wanted = embedders or min(room, max_embedders)
    actors = min(wanted, room)
    most = actors if embedders else max_embedders
    # A dead node's actors restart on the remaining nodes, where they could take the last CPU that reading needs. One
    # actor is enough for a run that loses nodes, and Ray Data ends idle ones.
    least = 1 if len(nodes) > 1 else actors
    left = min(node["CPU"] - taken * cpus for node, taken in zip(nodes, slots, strict=True))
    task = min(1.0, left / 2)
    light = task * LIGHT
    crawls = int((left - task - light) / light + _ROUNDING)
    threads = min(THREADS, int(cpus) + 1)  # the CPU reserved for reading is idle most of the time
    # Ray Data divides unreserved resources equally between stages, unless their number of tasks is limited. Limited to
    # the reading that `most` actors need, it leaves the rest to the actors. How much a GPU needs is unknown.
    tasks = None if gpus else max(2, math.ceil(most * cpus * READING_SHARE / task))
    message = (
        f"{counted(wanted, 'embedding actor does', 'embedding actors do')} not fit into the free resources: using "
        f"{actors}"
        if actors < wanted
        else ""
    )
    return Pools(least, actors, most, cpus, threads, gpus, task, light, tasks, crawls), message


def _room(node: Node) -> float:
    """Return how many CPUs of a node embedding may take; the others read, crawl and store."""
    cpus = node["CPU"]
    return cpus - max(min(1.0, cpus / 2), cpus * READING_SHARE)


def _cpus_of_actor(nodes: Sequence[Node]) -> float:
    """Return the largest actor size, up to THREADS, that uses NEARLY as many CPUs of all nodes as the best size."""
    rooms = [_room(node) for node in nodes]
    sizes = [room / math.ceil(room / THREADS) for room in rooms]
    used = {size: size * sum(int(room / size + _ROUNDING) for room in rooms) for size in sizes}
    return max(size for size in sizes if used[size] >= NEARLY * max(used.values()))
