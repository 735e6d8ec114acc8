"""The frontier hands out each URL once, nearest first, and never exceeds the budgets."""

import asyncio
import random

import pytest

from pipelines.indexing.crawling.frontier.queue import Frontier, FrontierEntry


async def walk(frontier: Frontier, graph: dict[str, list[str]], ok: set[str], workers: int) -> list[FrontierEntry]:
    """Visit `graph` with workers in random turns. Pages outside `ok` do not count."""
    visited: list[FrontierEntry] = []

    async def work() -> None:
        while (entry := await frontier.take()) is not None:
            visited.append(entry)
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
            found = [FrontierEntry(url, entry.depth + 1) for url in graph.get(entry.url, [])]
            await frontier.done(entry, entry.url in ok, found)

    frontier.add(FrontierEntry("0"))
    await asyncio.gather(*(work() for _ in range(workers)))
    return visited


def random_graph(seed: int, size: int = 60) -> dict[str, list[str]]:
    random.seed(seed)
    return {str(n): [str(random.randrange(size)) for _ in range(random.randrange(4))] for n in range(size)}


@pytest.mark.parametrize("seed", range(20))
def test_each_url_is_handed_out_once(seed):
    graph = random_graph(seed)
    visited = [entry.url for entry in asyncio.run(walk(Frontier(), graph, set(graph), 5))]
    assert len(visited) == len(set(visited))
    assert {to for url in visited for to in graph[url]} <= set(visited)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("budget", [1, 5, 17])
def test_number_of_good_pages_equals_the_budget(seed, budget):
    graph = {"0": [str(n) for n in range(1, 60)]}
    ok = {"0", *(str(n) for n in range(1, 60) if n % 3)}
    random.seed(seed)
    frontier = Frontier(max_pages=budget)
    visited = asyncio.run(walk(frontier, graph, ok, 8))
    assert sum(entry.url in ok for entry in visited) == budget
    assert frontier.exhausted


@pytest.mark.parametrize("seed", range(20))
def test_depth_is_the_length_of_the_shortest_path(seed):
    graph = random_graph(seed)
    shortest, level = {"0": 0}, ["0"]
    while level:
        found = [(to, shortest[url] + 1) for url in level for to in graph[url]]
        level = [to for to, depth in dict(found).items() if to not in shortest]
        shortest.update((to, depth) for to, depth in found if to in level)
    frontier = Frontier(max_depth=3)
    visited = {entry.url: entry.depth for entry in asyncio.run(walk(frontier, graph, set(graph), 5))}
    assert visited == {url: depth for url, depth in shortest.items() if depth <= 3}
    assert frontier.cut_by_depth is any(depth == 4 for depth in shortest.values())


@pytest.mark.parametrize("depth", [None, 6])
@pytest.mark.parametrize("seed", range(20))
def test_page_budget_selects_the_same_pages_in_any_reply_order(seed, depth):
    graph = random_graph(seed, size=200)
    ok = {url for url in graph if random.random() < 0.8}

    def pages(order: int) -> set[str]:
        random.seed(order)
        return {entry.url for entry in asyncio.run(walk(Frontier(20, depth), graph, ok, 6))}

    assert len({frozenset(pages(order)) for order in range(6)}) == 1


def test_stopped_frontier_hands_out_nothing():
    frontier = Frontier()
    frontier.add(FrontierEntry("a"))
    frontier.stop()
    frontier.add(FrontierEntry("b"))
    assert asyncio.run(frontier.take()) is None
