"""An OpenAI-compatible endpoint is called within its limits, retried when busy, and checked for valid replies."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kit.scripted_server import Raw, ScriptedServer

from jobs.cli import BAD_INPUT, exit_code
from pipelines.embedding.embedder import EmbeddingFailed
from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.openai import BATCH, BATCH_TOKENS, OpenAIEmbedder

Reply = Callable[[list[str]], tuple[int, Any]]


def rows(texts: list[str]) -> list[dict[str, Any]]:
    """Return rows in reverse: the index tells the order. A text's vector is its length and 1."""
    return [{"object": "embedding", "index": n, "embedding": [len(t), 1.0]} for n, t in enumerate(texts)][::-1]


class Endpoint:
    """Records the requests and answers with `replies` in turn, then correctly."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.replies: list[Reply] = []
        self.url = ""

    def __call__(self, body: dict[str, Any]) -> Raw:
        self.asked.append(body["input"])
        reply = self.replies.pop(0) if self.replies else lambda texts: (200, rows(texts))
        status, data = reply(body["input"])
        return Raw(status, json.dumps({"object": "list", "model": body["model"], "data": data}))

    def embedder(self, retries: int = 2) -> OpenAIEmbedder:
        return OpenAIEmbedder(load_tokenizer("openai:test"), self.url, None, retries)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    with ScriptedServer({"/v1/embeddings": endpoint}) as server:
        endpoint.url = f"{server.url}/v1"
        yield endpoint


def test_given_order_survives_batches_and_shuffled_answers(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder()
    assert embedder.dimension == 2
    vectors = embedder.embed_chunks(["x" * n for n in range(1, 2 * BATCH + 9)])
    assert vectors[:, 0] / vectors[:, 1] == pytest.approx(range(1, 2 * BATCH + 9))
    assert [len(texts) for texts in endpoint.asked[1:]] == [BATCH, BATCH, 8]


def test_requests_stay_within_the_token_budget(endpoint: Endpoint) -> None:
    text = "x" * 100_000
    endpoint.embedder().embed_chunks([text] * 7)
    assert all(sum(map(len, texts)) <= BATCH_TOKENS for texts in endpoint.asked)
    assert sum(map(len, endpoint.asked[1:])) == 7


def test_busy_server_is_asked_again(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder()
    endpoint.replies = [lambda texts: (429, []), lambda texts: (503, [])]
    assert embedder.embed_query("x").shape == (2,)
    assert len(endpoint.asked) == 1 + 3


def test_server_that_stays_down_is_named_with_the_text(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder(retries=0)
    endpoint.replies = [lambda texts: (500, [])]
    with pytest.raises(EmbeddingFailed, match=r"127\.0\.0\.1.*the text"):
        embedder.embed_chunks(["the text"])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda texts: rows(texts)[1:],
        lambda texts: rows(texts) + rows(texts),
        lambda texts: [{**row, "index": 0} for row in rows(texts)],
        lambda texts: [{**row, "embedding": [1.0] * (1 + row["index"])} for row in rows(texts)],
    ],
    ids=["missing", "doubled", "same index", "unequal"],
)
def test_mismatched_answers_are_refused(endpoint: Endpoint, wrong: Callable[[list[str]], Any]) -> None:
    embedder = endpoint.embedder()
    endpoint.replies = [lambda texts: (200, wrong(texts))]
    with pytest.raises(EmbeddingFailed, match="missing, doubled or of unequal length"):
        embedder.embed_chunks(["a", "b", "c"])


@pytest.mark.parametrize("sent", [None, "text", [5], [{"index": 0}], [{"index": 0, "embedding": "AACAPw=="}]])
def test_reply_without_a_list_of_vectors_is_reported(endpoint: Endpoint, sent: Any) -> None:
    embedder = endpoint.embedder()
    endpoint.replies = [lambda texts: (200, sent)]
    with pytest.raises(EmbeddingFailed, match="it sent"):
        embedder.embed_chunks(["a"])


def test_html_page_instead_of_vectors_is_reported() -> None:
    page = ScriptedServer({"/v1/embeddings": Raw(200, "<html>", "text/html")})
    with page as server, pytest.raises(EmbeddingFailed, match="it sent '<html>'"):
        OpenAIEmbedder(load_tokenizer("openai:test"), f"{server.url}/v1", None)


def test_server_with_a_smaller_batch_limit_gets_smaller_batches(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder()
    endpoint.replies = [lambda texts: (413, []), lambda texts: (422, [])]
    vectors = embedder.embed_chunks(["x" * n for n in range(1, BATCH + 2)])
    assert vectors[:, 0] / vectors[:, 1] == pytest.approx(range(1, BATCH + 2))
    embedder.embed_chunks(["x"] * BATCH)
    assert max(map(len, endpoint.asked[-4:])) == BATCH // 4


def test_changing_dimension_is_refused(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder()
    endpoint.replies = [lambda texts: (200, [{**row, "embedding": [1.0] * 5} for row in rows(texts)])]
    with pytest.raises(EmbeddingFailed, match="expected"):
        embedder.embed_chunks(["a"])


def test_missing_key_is_bad_input_that_says_where_to_set_it() -> None:
    with pytest.raises(EmbeddingFailed, match="set OPENAI_API_KEY") as raised:
        OpenAIEmbedder(load_tokenizer("openai:text-embedding-3-small"), None, None)
    assert exit_code(raised.value) == BAD_INPUT


def test_tokens_are_never_underestimated() -> None:
    counter = load_tokenizer("openai:text-embedding-3-small")
    assert counter.dimension == 1536
    assert counter.count_tokens(["漢字", "abc"]) == [8, 5]
