"""Custom legs: any number of them, searched concurrently, fused, and answered from without an index."""

import threading
from collections.abc import Awaitable, Sequence

import numpy as np
import pytest

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.fusion_retriever import FusionRetriever
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.search import Search
from pipelines.records import Filters, Hit

TEXTS = {
    "scaling": "Set num_replicas to scale a deployment to more replicas.",
    "logging": "Log lines of replicas are in the folder of the session.",
    "lamps": "A lamp is dimmed by its level.",
}


class Words:
    """Scores each text by its share of the query's words."""

    def __init__(self, name: str = "words", weight: float = 1.0) -> None:
        self.name, self.weight, self.asked = name, weight, []

    def search(self, query: str, k: int) -> Sequence[Hit]:
        self.asked.append((query, k))
        words = set(query.lower().split())
        found = [Hit("", f"https://d.test/{name}", text=text, score=len(words & set(text.lower().split())))
                 for name, text in TEXTS.items()]  # fmt: skip
        return sorted((hit for hit in found if hit.score), key=lambda hit: -hit.score)[:k]


class Awaited(Words):
    async def search(self, query: str, k: int) -> Sequence[Hit]:  # type: ignore[override]
        return Words.search(self, query, k)


class Wrapped(Awaited):
    """Wraps a coroutine function in a plain one, like a decorator."""

    def search(self, query: str, k: int) -> Awaitable[Sequence[Hit]]:  # type: ignore[override]
        return Awaited.search(self, query, k)


class BreaksLater(Words):
    def search(self, query: str, k: int) -> Sequence[Hit]:
        return (1 / 0 for _ in range(k))  # type: ignore[return-value]


class Forgets(Words):
    def search(self, query: str, k: int) -> Sequence[Hit]:
        return None  # type: ignore[return-value]


class Broken(Words):
    def search(self, query: str, k: int) -> Sequence[Hit]:
        raise ConnectionError("away")


async def find(retriever: FusionRetriever, *queries: str, **more: object):
    return await retriever.aretrieve(Search(queries or ("scale a deployment",), **more))  # type: ignore[arg-type]


async def test_every_leg_gets_every_query_and_equal_texts_are_one_hit() -> None:
    legs = [Words("words"), Awaited("others", 2.0)]
    found = await find(FusionRetriever(legs), "scale a deployment", "log lines of replicas", k=2)
    assert [len(leg.asked) for leg in legs] == [2, 2]
    assert {hit.url for hit in found.hits} == {"https://d.test/scaling", "https://d.test/logging"}
    assert found.hits[0].ranks == {"words": 1, "others": 1} and found.queries[1] == "log lines of replicas"


async def test_legs_are_searched_concurrently() -> None:
    meeting = threading.Barrier(2, timeout=10)

    class Meets(Words):
        def search(self, query: str, k: int) -> Sequence[Hit]:
            meeting.wait()
            return super().search(query, k)

    found = await find(FusionRetriever([Meets("a"), Meets("b")]))
    assert found.hits and not found.degraded


async def test_failing_leg_is_named_and_the_others_answer() -> None:
    found = await find(FusionRetriever([Broken("broken"), Words()]))
    assert found.degraded == ("broken",) and found.hits[0].url == "https://d.test/scaling"


async def test_leg_can_return_an_awaitable() -> None:
    found = await find(FusionRetriever([Wrapped()]))
    assert not found.degraded and found.hits[0].url == "https://d.test/scaling"


@pytest.mark.parametrize("leg", [BreaksLater, Forgets])
async def test_leg_that_fails_while_its_hits_are_read_has_failed(leg: type[Words]) -> None:
    found = await find(FusionRetriever([leg("broken"), Words()]))
    assert found.degraded == ("broken",) and found.hits[0].url == "https://d.test/scaling"


async def test_filters_and_weights_apply_to_custom_legs_too() -> None:
    legs = [Words("a"), Words("b", 0.0)]
    found = await find(FusionRetriever(legs), filters=Filters(url_prefix="https://d.test/lamps"))
    assert all(hit.url == "https://d.test/lamps" for hit in found.hits)
    found = await find(FusionRetriever(legs, Fusion(kind="relative_score", reference_weight=1.0)))
    assert found.hits[0].score == 1.0


@pytest.mark.parametrize("legs", [[], [Words(), Words()]])
def test_legs_need_unique_names(legs: list[Words]) -> None:
    with pytest.raises(ValueError, match="names of their own"):
        QueryEngine(legs)


def test_engine_takes_one_leg_or_a_list_of_legs() -> None:
    for retriever in (Words(), [Words(), Awaited("others")]):
        answer = QueryEngine(retriever).query("How do I scale a deployment?")
        assert "num_replicas" in answer.text and answer.hits[0].url == "https://d.test/scaling"
        assert answer.cited[0] == answer.hits[0].chunk_id


async def test_claim_vectors_come_from_the_given_embedder() -> None:
    retriever = FusionRetriever([Words()], embed=lambda texts: np.eye(len(texts), 3, dtype=np.float32))
    assert (await retriever.aembed(["a", "b"])).shape == (2, 3)
