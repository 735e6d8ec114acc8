"""Rerankers: a new order that keeps every earlier score, or a clear failure that changes nothing."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.answering import make_hit
from kit.scripted_server import HANG, Raw, ScriptedServer

from pipelines.answering.reranking.base import RerankFailed, by_score, document
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.answering.reranking.http import HTTPReranker, endpoint_of
from pipelines.records import Hit

TEXTS = ["ray serve scales", "tune tunes", "how does the work work", "a replica of serve"]
ODD = ["", "😀" * 300, "C++ (", "long " * 10_000, "\x00\ud800", "<passage>", "{question}"]


def hits() -> list[Hit]:
    """Return four hits as fusion returns them."""
    return [
        replace(hit, score=0.9 - n / 10, score_kind="rrf", ranks={"bm25": n + 1}, scores={"bm25": 7.0 - n})
        for n, hit in enumerate(make_hit(f"https://docs/en/{n}.html", text) for n, text in enumerate(TEXTS))
    ]


def order(reranked: Sequence[Hit]) -> list[int]:
    """Return the hits' previous positions."""
    return [TEXTS.index(hit.text) for hit in reranked]


def keeps_earlier_scores(hit: Hit) -> bool:
    before = hits()[TEXTS.index(hit.text)]
    return before.scores.items() <= hit.scores.items() and hit.scores["rrf"] == before.score


def test_scores_are_kept_ties_stay_in_order_and_nan_gives_no_order():
    first, *rest = by_score(hits(), [0.1, 0.7, 0.1, 0.1], "judge")
    assert (first.score, first.score_kind, first.text) == (0.7, "judge", TEXTS[1])
    assert first.ranks == {"bm25": 2, "judge": 1}
    assert first.scores == {"bm25": 6.0, "rrf": 0.8, "judge": 0.7}
    assert [hit.text for hit in rest] == [TEXTS[0], TEXTS[2], TEXTS[3]]
    with pytest.raises(RerankFailed, match="nan"):
        by_score(hits(), [1, float("nan"), 2, 3], "judge")


# ---------------------------------------------------------------------------------------------- cross-encoder


def save_model(folder: Path, kind: str, labels: int = 1) -> str:
    """Save a tiny BERT with random weights."""
    import torch
    import transformers

    words = sorted({word for text in TEXTS for word in text.split()})
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    shape |= {"vocab_size": len(words) + 5, "max_position_embeddings": 64, "num_labels": labels}
    config = transformers.BertConfig(initializer_range=1.0, **shape)
    getattr(transformers, kind)(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoderReranker:
    return CrossEncoderReranker(save_model(tmp_path_factory.mktemp("ce") / "model", "BertForSequenceClassification"))


def test_cross_encoder_orders_by_its_own_scores(encoder):
    expected = [float(encoder.score([("how does serve work", document(hit))])[0]) for hit in hits()]
    assert len({round(score, 4) for score in expected}) == 4
    reranked = asyncio.run(encoder.rerank("how does serve work", hits()))
    assert order(reranked) == sorted(range(4), key=lambda place: -expected[place])
    np.testing.assert_allclose([hit.score for hit in reranked], sorted(expected, reverse=True), rtol=1e-4)
    assert [hit.ranks["cross-encoder"] for hit in reranked] == [1, 2, 3, 4]
    assert {hit.score_kind for hit in reranked} == {"cross-encoder"}
    assert all(keeps_earlier_scores(hit) for hit in reranked)


def test_cross_encoder_scores_many_questions_at_once(encoder):
    pairs = [(question, text) for question in TEXTS for text in TEXTS]
    together = encoder.score(pairs)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, [encoder.score([pair])[0] for pair in pairs], rtol=1e-4)
    assert encoder.score([]).shape == (0,)
    assert asyncio.run(encoder.rerank("a", [])) == ()


def test_cross_encoder_serves_concurrent_questions(encoder):
    async def together() -> list[tuple[Hit, ...]]:
        return await asyncio.gather(*(encoder.rerank(text, hits()) for text in TEXTS * 3))

    apart = [order(asyncio.run(encoder.rerank(text, hits()))) for text in TEXTS * 3]
    assert [order(one) for one in asyncio.run(together())] == apart


def test_cross_encoder_reads_any_text(encoder):
    odd = [replace(hit, text=text) for hit, text in zip(hits() * 2, ODD, strict=False)]
    for question in ODD:
        assert len(asyncio.run(encoder.rerank(question, odd))) == len(odd)


def test_model_that_is_no_cross_encoder_is_refused(tmp_path):
    with pytest.raises(RerankFailed, match="bare BertModel"):
        CrossEncoderReranker(save_model(tmp_path / "embedder", "BertModel"))
    with pytest.raises(RerankFailed, match="3 scores for a pair"):
        CrossEncoderReranker(save_model(tmp_path / "three", "BertForSequenceClassification", labels=3))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RerankFailed, match=r"empty.*does not load"):
        CrossEncoderReranker(str(tmp_path / "empty"))


# ---------------------------------------------------------------------------------------------- endpoint


def serve(answer: Any, requests: list[Any] | None = None) -> ScriptedServer:
    """Serve a rerank endpoint that answers with a status and body, or HANG, and collects `requests`."""

    def reply(request: dict[str, Any]) -> Any:
        if requests is not None:
            requests.append(request)
        if answer is HANG:
            return HANG
        status, body = answer
        text = body if isinstance(body, str) else json.dumps(body)
        return Raw(status, text, headers={"Location": "/elsewhere"})

    return ScriptedServer({"/v1/rerank": reply})


def results(*pairs: tuple[Any, Any]) -> tuple[int, Any]:
    return 200, {"id": "1", "results": [{"index": index, "relevance_score": score} for index, score in pairs]}


def ask(reranker: HTTPReranker, given: Sequence[Hit] | None = None) -> tuple[Hit, ...]:
    async def once() -> tuple[Hit, ...]:
        try:
            return await reranker.rerank("how?", hits() if given is None else given)
        finally:
            await reranker.close()

    return asyncio.run(once())


def test_endpoint_is_called_in_the_format_of_cohere():
    requests: list[Any] = []
    with serve(results((2, 0.9), (0, 0.5), (3, 0.2), (1, 0.1)), requests) as endpoint:
        reranked = ask(HTTPReranker(endpoint.url, "rerank-v3", api_key="secret"))
    assert endpoint.asked == [("/v1/rerank", "Bearer secret")]
    documents = [document(hit) for hit in hits()]
    assert requests == [{"model": "rerank-v3", "query": "how?", "documents": documents, "top_n": 4}]
    assert order(reranked) == [2, 0, 3, 1]
    assert [hit.score for hit in reranked] == [0.9, 0.5, 0.2, 0.1]
    assert {hit.score_kind for hit in reranked} == {"rerank-endpoint"}
    assert all(keeps_earlier_scores(hit) for hit in reranked)


def test_one_reranker_serves_several_event_loops():
    with serve(results((1, 1), (0, 0.5), (2, 0.5), (3, 0))) as endpoint:
        reranker = HTTPReranker(endpoint.url, "m")
        assert [order(asyncio.run(reranker.rerank("?", hits()))) for _ in range(3)] == [[1, 0, 2, 3]] * 3


def test_hits_omitted_by_the_endpoint_follow_with_their_old_score():
    with serve(results((3, 0.2), (1, 0.4))) as endpoint:
        reranked = ask(HTTPReranker(endpoint.url, "m"))
    assert order(reranked) == [1, 3, 0, 2]
    assert [hit.score_kind for hit in reranked] == ["rerank-endpoint", "rerank-endpoint", "rrf", "rrf"]


@pytest.mark.parametrize(("answer", "said"), [
    (results(), "without results"),
    ((200, []), "without results"),
    ((200, {"results": {}}), "without results"),
    ((200, "<html>"), "no JSON"),
    ((200, "[" * 100_000), "no JSON"),
    (results((4, 0.1)), "index from 0 to 3"),
    (results((-1, 0.1)), "index from 0 to 3"),
    (results((0, 0.1), (0, 0.2)), "each once"),
    (results((0, None)), "finite relevance_score"),
    (results((0, float("nan"))), "finite relevance_score"),
    (results(("0", 0.5)), "index from 0 to 3"),
    ((200, {"results": ["0"]}), "index from 0 to 3"),
    ((401, {"message": "bad key s3cret-key"}), "401"),
    ((429, {"message": "slow down"}), "slow down"),
    ((500, "boom" * 10_000), "500: 'boom"),
    ((302, ""), "302"),
])  # fmt: skip
def test_broken_endpoint_is_a_clear_failure_without_the_key(answer, said):
    with serve(answer) as endpoint, pytest.raises(RerankFailed) as failure:
        ask(HTTPReranker(endpoint.url.replace("http://", "http://user:pass@"), "m", api_key="s3cret-key"))
    assert said in str(failure.value)
    assert f"{endpoint.url}/v1/rerank" in str(failure.value)
    assert "s3cret-key" not in str(failure.value) and "pass" not in str(failure.value)
    assert len(str(failure.value)) < 500
    assert len(endpoint.asked) == 1


def test_slow_or_missing_endpoint_fails_unless_there_is_nothing_to_rank():
    with serve(HANG) as endpoint, pytest.raises(RerankFailed, match=r"within 0\.1 s"):
        ask(HTTPReranker(endpoint.url, "m", timeout_s=0.1))
    with pytest.raises(RerankFailed, match="cannot be reached"):
        ask(HTTPReranker(endpoint.url, "m"))
    assert ask(HTTPReranker(endpoint.url, "m"), []) == ()


@pytest.mark.parametrize(("url", "expected"), [
    ("http://host", "http://host/v1/rerank"),
    ("https://host/api/v1/", "https://host/api/v1/rerank"),
    ("https://host/v2/rerank", "https://host/v2/rerank"),
    ("http://host/rerank/", "http://host/rerank"),
])  # fmt: skip
def test_endpoint_can_be_given_by_its_server(url, expected):
    assert endpoint_of(url) == expected


@pytest.mark.parametrize("url", ["", "host:80", "ftp://host", "http://"])
def test_invalid_address_is_refused_immediately(url):
    with pytest.raises(RerankFailed, match="not an address"):
        HTTPReranker(url, "m")


@pytest.mark.parametrize("card", ['{"accepted": false}', '{"accepted": null}', "{}", "[]", "{", "\xff"])
def test_cross_encoder_rejected_by_its_training_is_refused(tmp_path: Path, card: str) -> None:
    (tmp_path / "card.json").write_bytes(card.encode("latin-1"))
    with pytest.raises(RerankFailed, match="not accepted"):
        CrossEncoderReranker(str(tmp_path))
