"""Training an embedding model: it learns from right answers, is judged on unseen pages, and is used if better."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit.tiny_model import tiny_model

from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.tokens import ModelNotAccepted
from pipelines.evaluation.dataset import Example, page_of
from pipelines.files.model_cards import write_card
from pipelines.records import Hit
from pipelines.training.embedder import BadRank, EmbedderPlan, check_rank, fine_tune, load_model, new_words
from pipelines.training.fine_tuning import FineTuningData, TrainerMissing
from pipelines.training.mining import (
    Corpus,
    NegativeDraw,
    NothingToLearn,
    Triple,
    embedding_text,
    hard_negatives,
    mine_triples,
    select_answered,
    split,
)
from pipelines.training.ranking import judge_ranks, make_judging_set, ranks_by_question
from pipelines.training.run import Workplace, acceptance
from pipelines.training.vocabulary import extend_vocabulary

pytestmark = pytest.mark.slow

SITE = "https://docs.test/"


def chunk(path: str, text: str, *anchors: str, ordinal: int = 0) -> Hit:
    return Hit(f"{path}{anchors}{ordinal}", SITE + path, anchors, path, (path, *anchors), text, f"hash of {text}", 1.0,
               "none", ordinal=ordinal)  # fmt: skip


def example(question: str, *sources: str) -> Example:
    return Example(question, tuple(SITE + source for source in sources))


CHUNKS = (
    chunk("a", "alpha", "top"),
    chunk("a", "beta", "top", "deep", ordinal=1),
    chunk("b", "gamma", "top"),
    chunk("copy", "beta", "top"),
    chunk("c", "delta"),
)


def texts(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


# ---------------------------------------------------------------------------------------------- mining


def test_answering_chunks_are_under_the_anchor_or_have_the_same_text() -> None:
    corpus = Corpus(CHUNKS)

    def answering_pages(*sources: str) -> list[str]:
        return [corpus.chunks[place].url.removeprefix(SITE) for place in corpus.answering(example("?", *sources))]

    assert answering_pages("a#top") == ["a", "a", "copy"]
    assert answering_pages("a#deep") == ["a", "copy"]
    assert answering_pages("c", "b#top") == ["b", "c"]
    assert answering_pages("a#gone") == []


def test_negative_is_no_reference_page_no_copy_and_not_held_out() -> None:
    corpus, question = Corpus(CHUNKS), example("?", "a#top")
    assert texts(hard_negatives(question, CHUNKS, corpus, most=9)) == ["gamma", "delta"]
    assert texts(hard_negatives(question, CHUNKS, corpus, forbidden={SITE + "b"}, most=9)) == ["delta"]
    assert texts(hard_negatives(question, CHUNKS, corpus, most=1)) == ["gamma"]
    assert texts(hard_negatives(question, CHUNKS, corpus, most=1, skip=1)) == ["delta"]


def test_triples_have_the_reference_section_and_the_requested_negatives() -> None:
    corpus = Corpus(CHUNKS)

    def mine(question: Example, hits: Sequence[Hit]) -> list[Triple]:
        return mine_triples([question], NegativeDraw(corpus, lambda _: hits, 2), embedding_text)

    (triple,) = mine(example("what is beta", "a#deep"), CHUNKS)
    assert triple.question == "what is beta"
    assert triple.positive == "a > top > deep\nbeta"  # with its headings, without duplicates
    assert [text.splitlines()[-1] for text in triple.negatives] == ["gamma", "delta"]
    assert mine(example("?", "a#deep"), CHUNKS[:3]) == []


def test_data_set_of_another_site_is_reported() -> None:
    with pytest.raises(NothingToLearn, match=r"elsewhere.*belong to this collection"):
        select_answered([Example("?", ("https://elsewhere.test/#x",))], Corpus(CHUNKS))


def test_no_page_is_in_both_training_and_held_out_set() -> None:
    examples = [example(f"question {n}", f"p{n % 40}#s{n}") for n in range(200)]
    train, held_out = split(examples, Corpus([]), seed=3)
    learned, kept = ({page_of(examples[n].sources[0]) for n in part} for part in (train, held_out))
    assert learned & kept == set() and sorted(train + held_out) == list(range(200))
    assert len(held_out) == 40


@pytest.mark.parametrize("seed", range(5))
def test_held_out_text_is_not_learned_from_its_copy_on_another_page(seed: int) -> None:
    pages = [chunk(f"p{n}", f"text {n // 2}", "s") for n in range(40)]  # each text is on two pages
    corpus, examples = Corpus(pages), [example(f"question {n}", f"p{n}#s") for n in range(40)]
    train, held_out = split(examples, corpus, seed)
    learned, kept = ({n // 2 for n in part} for part in (train, held_out))
    assert learned & kept == set() and learned | kept == set(range(20))
    held = {page_of(examples[n].sources[0]) for n in held_out}
    for question in (examples[n] for n in train):
        wrong = hard_negatives(question, pages, corpus, forbidden=held, most=40)
        assert {hit.text for hit in wrong}.isdisjoint(f"text {n}" for n in kept) and wrong
    one_copy = {page_of(examples[n].sources[0]) for n in held_out if n % 2}
    wrong = hard_negatives(examples[train[0]], pages, corpus, forbidden=one_copy, most=40)
    assert {hit.text for hit in wrong}.isdisjoint(f"text {n}" for n in kept)


def test_judging_set_has_the_answers_and_the_requested_number_of_others() -> None:
    corpus, question = Corpus(CHUNKS), example("?", "b#top")
    test = make_judging_set([question], corpus, pool=3)
    assert len(test.texts) == 3 and test.relevant[question.id] <= test.texts.keys()
    assert [test.texts[place] for place in test.relevant[question.id]] == ["b > top\ngamma"]
    assert len(make_judging_set([question], corpus, pool=0).texts) == len(CHUNKS)


# ---------------------------------------------------------------------------------------------- the gate


def test_scores_before_and_after_follow_from_the_ranks() -> None:
    verdict = judge_ranks(before=[1, 6, 0, 20], after=[1, 1, 9, 2])
    assert {k: i.value for k, i in verdict.before.retrieval_score.items()} == {1: 0.25, 5: 0.25, 9: 0.5, 18: 0.5}
    assert {k: i.value for k, i in verdict.after.retrieval_score.items()} == {1: 0.5, 5: 0.75, 9: 1.0, 18: 1.0}
    assert verdict.before.mrr.value == pytest.approx((1 + 1 / 6 + 1 / 20) / 4)
    assert verdict.gain.difference == 0.5


def test_only_a_significant_gain_is_accepted() -> None:
    assert judge_ranks([0] * 40, [1] * 20 + [0] * 20).accepted
    assert not judge_ranks([1] * 20 + [0] * 20, [1] * 20 + [0] * 20).accepted
    assert not judge_ranks([0] * 20 + [1] * 20, [1] + [0] * 19 + [1] * 20).accepted  # one of forty may be chance
    assert not judge_ranks([1] * 40, [0] * 40).accepted


def test_checkpoints_of_another_model_are_not_resumed(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "m")
    one, other = place.checkpoints("folder:1"), place.checkpoints("folder:2")
    assert one != other and one.parent == other.parent == place.folder / "checkpoints"


def write_verdict(folder: Path, after: list[int], accept: bool = False) -> dict[str, Any]:
    verdict = judge_ranks([0] * 40, after)
    data = FineTuningData(EmbedderPlan(), None, "docs", [example("?", "a")], [], [], None)
    entries = data.card_entries(verdict, ())
    write_card(folder, {"kind": "embedding-model", "version": 1, **acceptance(verdict.accepted, accept), **entries})
    return dict(json.loads((folder / "card.json").read_text()))


def test_card_shows_the_training_data_and_whether_the_model_is_usable(tmp_path: Path) -> None:
    good = write_verdict(tmp_path, [1] * 40)
    assert good["accepted"] is True and good["forced"] is False and good["metrics"]["gain"]["difference"] == 1.0
    assert good["data"] == {"fingerprint": good["data"]["fingerprint"], "questions": 1, "pages": 1}
    assert write_verdict(tmp_path, [0] * 40)["accepted"] is False
    forced = write_verdict(tmp_path, [0] * 40, accept=True)
    assert forced["accepted"] is True and forced["forced"] is True


# ---------------------------------------------------------------------------------------------- the model


@pytest.fixture
def tiny(tmp_path: Path) -> Any:
    """Return a new model of a few thousand weights that sentence-transformers can load."""
    return load_model(str(tiny_model(tmp_path)))


def test_rejected_model_is_not_loaded(tiny: Any, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    tiny.save(str(folder))
    identity = load_tokenizer(str(folder)).identity
    write_verdict(folder, [0] * 40)
    with pytest.raises(ModelNotAccepted, match="--accept"):
        load_tokenizer(str(folder))
    write_verdict(folder, [0] * 40, accept=True)
    assert load_tokenizer(str(folder)).identity == identity  # the card changes no vector


def test_ranks_equal_those_of_the_evaluator(tiny: Any, tmp_path: Path) -> None:
    corpus = Corpus([chunk("x", "the very same words"), chunk("y", "something else entirely here"), *CHUNKS])
    same, missing = example("x\nthe very same words", "x"), example("quite another matter", "y")
    test = make_judging_set([same, missing], corpus, pool=0)
    ranks = ranks_by_question(tiny, test, tmp_path / "evaluation", "before")
    assert ranks[same.id] == 1 and 1 <= ranks[missing.id] <= len(corpus.chunks)
    assert list((tmp_path / "evaluation").glob("*before*results.csv"))


def test_missing_libraries_are_named_before_any_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TrainerMissing, match=r"accelerate and datasets: `pip install raydex\[train\]`"):
        fine_tune(None, [Triple("q", "p", ("n",))], EmbedderPlan(), Path())


# Words that a model with random weights can distinguish after a few steps.
WORDS = ("one", "two", "red", "sun")
LEARNED = [Triple(f"question {word}", f"answer {word}", ("nothing of the kind",)) for word in WORDS]


def weights_of(model: Any) -> dict[str, Any]:
    return {name: weights.detach().clone() for name, weights in model.named_parameters()}


def train(model: Any, folder: Path, **plan: Any) -> dict[str, Any]:
    plan = {"batch_size": 2, "learning_rate": 1e-2, "checkpoint_steps": 2, **plan}
    fine_tune(model, LEARNED, EmbedderPlan(**plan), folder)
    return weights_of(model)


def test_training_moves_the_weights_and_resumes_from_its_checkpoints(tiny: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    before = weights_of(tiny)
    after = train(tiny, tmp_path / "c", epochs=2)
    assert any(not after[name].equal(before[name]) for name in before)
    tiny.load_state_dict(before, strict=False)
    newest = max((tmp_path / "c").glob("*/checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    saved = newest.stat().st_mtime_ns
    resumed = train(tiny, tmp_path / "c", epochs=2)
    assert all(resumed[name].allclose(after[name], atol=1e-6) for name in after)
    assert newest.stat().st_mtime_ns == saved  # nothing was trained twice


def test_training_only_embeddings_leaves_the_network_unchanged(tiny: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    before = weights_of(tiny)
    after = train(tiny, tmp_path / "c", layers="embeddings")
    moved = {name for name in before if not after[name].equal(before[name])}
    assert len(moved) == 1 and "word_embeddings" in moved.pop()


def test_low_rank_changes_leave_the_rest_and_are_merged_into_the_weights(tiny: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    torch = pytest.importorskip("torch")
    before = weights_of(tiny)
    after = train(tiny, tmp_path / "c", low_rank=2, epochs=4)
    assert after.keys() == before.keys()  # the model has its own layers again
    moved = {name for name in before if not after[name].equal(before[name])}
    assert moved and all("encoder.layer.0." in name and name.endswith("weight") for name in moved)
    assert all(torch.linalg.matrix_rank(after[name] - before[name], atol=1e-5) <= 2 for name in moved)
    assert list((tmp_path / "c").glob("*/checkpoint-*")) == []
    vectors = tiny.encode(["question one"])
    tiny.save(str(tmp_path / "saved"))
    assert load_model(str(tmp_path / "saved")).encode(["question one"]) == pytest.approx(vectors, abs=1e-6)


def test_new_words_are_learned_together_with_low_rank_changes(tiny: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    extend_vocabulary(tiny, ["question"])
    before = weights_of(tiny)
    after = train(tiny, tmp_path / "c", low_rank=2, new_words=1)
    (name,) = (name for name in before if "word_embeddings" in name)
    assert not after[name][-1].equal(before[name][-1])


def test_rank_that_is_not_low_is_refused(tmp_path: Path) -> None:
    base = load_tokenizer(str(tiny_model(tmp_path)))
    check_rank(EmbedderPlan(low_rank=15), base)
    with pytest.raises(BadRank, match=r"--low-rank is 16, and the vectors of .* have 16 dimensions"):
        check_rank(EmbedderPlan(low_rank=16), base)


def test_corpus_word_becomes_one_token_starting_at_the_mean_of_its_pieces(tiny: Any, tmp_path: Path) -> None:
    base = load_tokenizer(str(tmp_path / "tiny"))
    texts = ["KubeRay schedules, kuberay"] * 15 + ["one unfathomableword"]
    corpus = Corpus([chunk(f"p{n}", text) for n, text in enumerate(texts)])
    assert new_words(corpus, base, 5) == ("kuberay",)  # "schedules" occurs 15 times
    assert new_words(corpus, base, 0) == ()
    weights = tiny[0].auto_model.get_input_embeddings().weight.detach().clone()
    pieces = tiny.tokenizer("kuberay", add_special_tokens=False)["input_ids"]
    assert extend_vocabulary(tiny, ["kuberay"]) == 1
    grown = tiny[0].auto_model.get_input_embeddings().weight.detach()
    assert grown[-1].tolist() == pytest.approx(weights[pieces].mean(dim=0).tolist())
    assert grown[: len(weights)].equal(weights) and len(grown) == len(weights) + 1
    tiny.save(str(tmp_path / "saved"))
    after = load_tokenizer(str(tmp_path / "saved"))
    for text in ("a kuberay", "a KubeRay"):
        assert after.count_tokens([text])[0] == base.count_tokens([text])[0] - len(pieces) + 1
    assert after.count_tokens(["kuberays"]) == base.count_tokens(["kuberays"])  # another word
    assert load_model(str(tmp_path / "saved")).encode(["a kuberay"]).shape == (1, 16)
