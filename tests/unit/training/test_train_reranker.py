"""Training a cross-encoder: its training data, and a real small training that resumes where it stopped."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from kit.answering import make_hit
from kit.tiny_model import tiny_model

from pipelines.answering.reranking.base import document
from pipelines.evaluation.dataset import Example
from pipelines.training import cross_encoder
from pipelines.training.mining import Corpus, NegativeDraw, NothingToLearn, Triple, mine_triples
from pipelines.training.ranking import rank_of_right

pytestmark = pytest.mark.slow

URL = "https://docs.example/"
CHUNKS = [make_hit(f"{URL}{page}#{part}", f"{page} {part} text") for page in "abcdefg" for part in ("x", "y")]
CORPUS = Corpus(CHUNKS)
ASKED = Example("How?", (f"{URL}a#x",))

needs_trainer = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("accelerate", "datasets")), reason="needs raydex[train]"
)


def mine(examples=(ASKED,), negatives=4, seed=0, **more):
    draw = NegativeDraw(CORPUS, lambda _: CHUNKS, negatives, seed=seed, **more)
    return mine_triples(examples, draw, document, seed)


def test_positive_is_the_reference_section_and_negatives_are_other_pages():
    (triple,) = mine(negatives=5)
    assert "a x text" in triple.positive
    assert len(set(triple.negatives)) == 5
    assert not any("a x text" in text or "a y text" in text for text in triple.negatives)


def test_no_negative_comes_from_a_held_out_page():
    (triple,) = mine(negatives=4, forbidden={f"{URL}{page}" for page in "bcde"})
    assert all(text.split("\n")[-1][0] in "fg" for text in triple.negatives)


def test_question_without_enough_negatives_or_its_section_is_left_out():
    gone = Example("Where?", (f"{URL}gone#x",))
    assert mine([ASKED, gone], negatives=13) == []
    assert len(mine([ASKED, gone], negatives=12)) == 1


def test_passage_disliked_by_a_reader_is_a_certain_negative():
    for seed in range(5):
        (triple,) = mine(negatives=2, seed=seed, disliked=lambda _: [CHUNKS[0], CHUNKS[9]])
        assert "e y text" in triple.negatives[0] and len(set(triple.negatives)) == 2
    (triple,) = mine(negatives=1, disliked=lambda _: CHUNKS[8:], forbidden={f"{URL}e"})
    assert "f x text" in triple.negatives[0]


def test_mining_is_reproducible_by_seed():
    assert mine(seed=1) == mine(seed=1)
    assert mine(seed=1) != mine(seed=2)


def test_rank_is_the_first_hit_on_a_reference_page():
    assert rank_of_right(ASKED, [CHUNKS[4], CHUNKS[1], CHUNKS[0]]) == 2
    assert rank_of_right(ASKED, CHUNKS[2:]) == 0


@pytest.fixture(scope="module")
def small_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


TRIPLES = [Triple("how", "right " * n, ("wrong a " * n, "wrong b " * n)) for n in range(1, 9)]


def fine_tune(base, checkpoints, triples=TRIPLES, **plan):
    """Train, and return the number of steps."""
    return cross_encoder.fine_tune(
        cross_encoder.load_model(str(base)), triples, cross_encoder.RerankerPlan(**plan), checkpoints
    )


@needs_trainer
def test_missing_training_data_is_reported_before_training(small_encoder, tmp_path):
    with pytest.raises(NothingToLearn):
        fine_tune(small_encoder, tmp_path, [])


@needs_trainer
@pytest.mark.parametrize("loss", ["binary", "listwise"])
def test_model_learns_right_from_wrong_and_loads_as_a_reranker(loss, small_encoder, tmp_path):
    from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker

    model = cross_encoder.load_model(str(small_encoder), max_tokens=32)
    plan = cross_encoder.RerankerPlan(loss=loss, epochs=12, batch_size=4, learning_rate=1e-2, max_tokens=32)
    cross_encoder.fine_tune(model, TRIPLES, plan, tmp_path / "checkpoints")
    model.save_pretrained(str(tmp_path / "model"))
    right, wrong = CrossEncoderReranker(str(tmp_path / "model")).score([("how", "right right"), ("how", "wrong a")])
    assert right > wrong


@needs_trainer
def test_checkpoint_of_a_killed_save_is_not_resumed(small_encoder, tmp_path):
    plan = {"epochs": 1, "batch_size": 8, "checkpoint_steps": 1}
    assert fine_tune(small_encoder, tmp_path, **plan) == 3
    (folder,) = tmp_path.iterdir()
    (folder / "checkpoint-3" / "trainer_state.json").unlink()
    (folder / "checkpoint-2" / "trainer_state.json").write_text("")
    assert fine_tune(small_encoder, tmp_path, **plan) == 3
    assert all((path / "trainer_state.json").stat().st_size for path in folder.iterdir())


@needs_trainer
def test_training_ends_when_its_time_is_up(small_encoder, tmp_path):
    assert fine_tune(small_encoder, tmp_path, epochs=50, batch_size=1, minutes=1e-6) == 1


def test_negative_marked_by_a_person_comes_first_even_on_the_right_page():
    pair = replace(ASKED, negatives=(f"{URL}a#y", f"{URL}d#z"))
    (triple,) = mine([pair], negatives=3)
    assert "a y text" in triple.negatives[0] and len(set(triple.negatives)) == 3
    (held_back,) = mine([pair], negatives=3, forbidden={f"{URL}a", f"{URL}d"})
    assert not any("a y text" in text for text in held_back.negatives)
