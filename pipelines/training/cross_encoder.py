"""Trains a small cross-encoder to rerank the hits of a collection.

It begins with an embedding model's weights and a new head. Knows neither where hits are stored nor whether the result
will be used. Heavy libraries are imported in functions.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pipelines.answering.reranking.base import document
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.embedding.tokens import TokenCounter, load_tokenizer
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.questions.feedback import Feedback, from_ratings, question_key
from pipelines.records import Hit
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.training import card, fine_tuning, mining
from pipelines.training.card import ModelFolder, Progress, RerankingPlan, TrainingResult, silent
from pipelines.training.fine_tuning import FineTuningPlan, FineTuningSelection
from pipelines.training.mining import Corpus, IndexedCollection, NothingToLearn, Triple
from pipelines.training.ranking import Hits, JudgingHits

KIND = "cross-encoder"
KS = (1, 3, 5, 9, 18)
# Retrieved hits among which negatives are sought: enough where a page has many of the best.
MINED_FROM = 60
# Negatives are drawn from so many of the best wrong hits: the very best alone hold most of the unlabelled right ones
# (Qu et al., RocketQA, 2021, find up to 70 % of top-ranked "negatives" to be right). Not tuned.
DRAWN_FROM = 20


class CrossEncoderPlan(FineTuningPlan):
    """The settings that decide the weights of a cross-encoder.

    `loss` "binary" takes each pair by itself (binary cross-entropy, the right ones weighted up to the wrong ones),
    "listwise" a question's passages together (ListNet; Cao et al., 2007). The learning rate is the usual one for
    cross-encoders of this size (2e-5 to 5e-5); the new head needs its upper end.
    """

    loss: Literal["binary", "listwise"] = Field("binary", description="of each pair, or of a question's passages")
    learning_rate: float = Field(5e-5, gt=0, description="its usual range is 2e-5 to 5e-5")
    batch_size: int = Field(16, ge=1, description="pairs, or questions if listwise")
    max_tokens: int = Field(192, ge=16, description="of question and passage together")
    minutes: float = Field(0.0, ge=0, description="end training after so long with what it has learned; 0: never")


class RerankerSelection(FineTuningSelection, RerankingPlan):
    """The questions and hits that a cross-encoder learns from and is judged by."""

    questions: int = Field(2_000, ge=0, description="questions to learn from; 0: all")
    held_out: int = Field(200, ge=0, description="questions to judge by; 0: all that are held out")
    negatives: int = Field(4, ge=1, description="wrong answers mined for each question")
    feedback: bool = Field(False, description="learn from ratings of the service's answers too")


@dataclass(frozen=True, slots=True)
class RerankerData:
    """The training set of a cross-encoder and the hits that judge it; `seconds` is the time to gather it."""

    base: TokenCounter
    collection: str
    train: Sequence[Example]
    judging: JudgingHits
    triples: Sequence[Triple]
    selection: RerankerSelection
    seconds: float


# ------------------------------------------------------------------------------------------- the training set


def gather_reranker_data(
    collection: IndexedCollection,
    examples: Sequence[Example],
    selection: RerankerSelection,
    progress: Progress = silent,
) -> RerankerData:
    """Return the training set, with negatives that the collection's own retrieval finds.

    Raises TrainerMissing, NothingToLearn, BadFolds, ModelNotFound and ModelUnsupported.
    """
    fine_tuning.check_trainer()
    started = time.monotonic()
    corpus = collection.corpus
    train, held_out = fine_tuning.divide(examples, corpus, selection)
    feedback = from_ratings(collection.ratings() if selection.feedback else [])
    liked = select_apart([example for example in feedback.examples if corpus.answering(example)], held_out)
    draw = NegativeDraw(
        corpus,
        lambda question: collection.retrieve(question, MINED_FROM),
        selection.negatives,
        frozenset(mining.pages_of(held_out)),
        selection.seed,
        disliked_hits(feedback, corpus),
    )
    train = [*train, *liked]
    triples = mining.mine_triples(
        train, corpus, draw, negatives=selection.negatives, read=document, seed=selection.seed
    )
    judging = JudgingHits.retrieve(collection, held_out, selection.depth)
    seconds = time.monotonic() - started
    named = mining.describe_named(train)
    progress(f"{len(triples):,} questions mined{named}, {len(held_out):,} to judge by, {seconds:.0f} s")
    base = load_tokenizer(selection.model or collection.index.settings.model)
    return RerankerData(base, collection.index.collection, train, judging, triples, selection, seconds)


class NegativeDraw:
    """Draws the negatives of an example by `seed`: what people named, hits that readers disliked, the best wrong ones.

    None lies on a page of `forbidden`.
    """

    def __init__(
        self,
        corpus: Corpus,
        retrieve: Callable[[str], Hits],
        negatives: int,
        forbidden: frozenset[str] = frozenset(),
        seed: int = 0,
        disliked: Callable[[str], Hits] = lambda question: (),
    ) -> None:
        self.corpus, self.retrieve, self.negatives, self.forbidden = corpus, retrieve, negatives, forbidden
        self.disliked = disliked
        self._rng = random.Random(seed)

    def __call__(self, example: Example) -> list[Hit]:
        """Return `negatives` hits, or fewer if retrieval finds no more."""
        named = mining.named_negatives(example, self.corpus, self.forbidden, self.negatives)
        disliked = self._wrong(example, self.disliked(example.question), self.negatives)
        known = mining.take_first(named, disliked, self.negatives)
        ids = {hit.chunk_id for hit in known}
        wrong = self._wrong(example, self.retrieve(example.question), DRAWN_FROM)
        others = [hit for hit in wrong if hit.chunk_id not in ids]
        return [*known, *self._rng.sample(others, min(self.negatives - len(known), len(others)))]

    def _wrong(self, example: Example, hits: Hits, most: int) -> list[Hit]:
        return mining.hard_negatives(example, hits, self.corpus, self.forbidden, most)


def select_apart(examples: Sequence[Example], held_out: Sequence[Example]) -> list[Example]:
    """Return the examples that share neither page nor question with `held_out`."""
    pages, questions = mining.pages_of(held_out), {question_key(example.question) for example in held_out}
    return [e for e in examples if pages.isdisjoint(mining.pages_of([e])) and question_key(e.question) not in questions]


def disliked_hits(feedback: Feedback, corpus: Corpus) -> Callable[[str], Hits]:
    """Return a function from a question to the chunks that did not help with it and are still in the index."""
    chunks = {hit.chunk_id: hit for hit in corpus.chunks} if feedback.disliked else {}

    def find(question: str) -> Hits:
        ids = dict.fromkeys(hit.chunk_id for hit in feedback.wrong(question))
        return [chunks[id] for id in ids if id in chunks]

    return find


# ------------------------------------------------------------------------------------------- training


def train_reranker(
    data: RerankerData,
    output: ModelFolder,
    plan: CrossEncoderPlan,
    *,
    device: str = "auto",
    accept: bool = False,
    progress: Progress = silent,
) -> TrainingResult:
    """Fine-tune, judge by the hits of held-out questions as they are served, and put the model into `output`.

    An interrupted training continues from its last checkpoint. `accept` accepts the model whatever the verdict is.
    Raises TrainerMissing and NothingToLearn.
    """
    started = time.monotonic()
    device, selection = fine_tuning.choose_device(device), data.selection
    model = load_model(data.base.model, device, plan.max_tokens)
    steps = fine_tune(model, data.triples, plan, output.checkpoints(data.base.identity))
    model.save_pretrained(str(fine_tuning.clear(output.model)))
    progress(f"trained for {steps:,} steps; judging")
    reranker = CrossEncoderReranker(str(output.model), device=device, max_length=plan.max_tokens)
    trained = time.monotonic()
    after = data.judging.ranks(reranker)
    latency = (time.monotonic() - trained) / len(after)
    verdict = card.judge_ranks(data.judging.ranks(), after, k=selection.k, ks=sorted({*KS, selection.k}))
    entries = card.make_card(
        KIND,
        base={"model": data.base.model, "identity": data.base.identity},
        examples=[*data.train, *data.judging.examples],
        verdict=verdict,
        settings={
            **plan.model_dump(),
            **selection.model_dump(include={"negatives", "depth", "questions", "feedback"}),
            "steps": steps,
            "collection": data.collection,
        },
        accept=accept,
    )
    output.put(entries)
    figures = {"seconds": round(data.seconds + time.monotonic() - started, 1), "rerank_s": latency}
    scores = f"{verdict}\n{latency:.2f} s to rerank {selection.depth} hits"
    return TrainingResult(output.path, entries, scores, figures)


def load_model(model: str, device: str = "cpu", max_tokens: int = 0) -> Any:
    """Return the encoder of a packaged name, folder or hub name, with a head that gives one score.

    The head is new unless `model` is a cross-encoder already. Raises ModelNotFound, ModelUnsupported, NothingToLearn.
    """
    from sentence_transformers import CrossEncoder

    counter = load_tokenizer(model)
    if counter.folder is None:
        raise NothingToLearn(f"{model} has no weights here: begin with a packaged model, a folder or a hub model")
    encoder = CrossEncoder(str(counter.folder), num_labels=1, device=device, local_files_only=True)
    if max_tokens:
        encoder.max_seq_length = min(max_tokens, encoder.max_seq_length or max_tokens)
    return encoder


def fine_tune(model: Any, triples: Sequence[Triple], plan: CrossEncoderPlan, checkpoints: Path) -> int:
    """Train `model` in place and return the number of steps done.

    Continues from the last checkpoint of the same triples and plan. Raises TrainerMissing and NothingToLearn.
    """
    folder = fine_tuning.checkpoint_folder(checkpoints, triples, plan)
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

    arguments = fine_tuning.trainer_arguments(folder, plan, model.device.type == "cpu")
    trainer = CrossEncoderTrainer(
        model=model,
        args=CrossEncoderTrainingArguments(**arguments),
        train_dataset=_dataset(triples, plan),
        loss=_loss(model, triples, plan),
        callbacks=_callbacks(plan),
    )
    return fine_tuning.run_trainer(trainer, folder)


def _dataset(triples: Sequence[Triple], plan: CrossEncoderPlan) -> Any:
    """Return one row a pair, or for the listwise loss one a question."""
    from datasets import Dataset

    lists = [
        (clean_for_tokenizer(t.question), [clean_for_tokenizer(text) for text in (t.positive, *t.negatives)])
        for t in triples
    ]
    if plan.loss == "listwise":
        labels = [[1.0] + [0.0] * (len(texts) - 1) for _, texts in lists]
        questions, documents = (list(column) for column in zip(*lists, strict=True))
        return Dataset.from_dict({"question": questions, "documents": documents, "labels": labels})
    rows = [(question, text, float(not place)) for question, texts in lists for place, text in enumerate(texts)]
    questions, documents, scores = (list(column) for column in zip(*rows, strict=True))
    return Dataset.from_dict({"question": questions, "document": documents, "label": scores})


def _loss(model: Any, triples: Sequence[Triple], plan: CrossEncoderPlan) -> Any:
    import torch
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, ListNetLoss

    if plan.loss == "listwise":
        return ListNetLoss(model)
    return BinaryCrossEntropyLoss(model, pos_weight=torch.tensor(float(len(triples[0].negatives))))


def _callbacks(plan: CrossEncoderPlan) -> list[Any]:
    from transformers import TrainerCallback

    class Deadline(TrainerCallback):
        """Ends training when the time is up; a step that has begun is finished."""

        def __init__(self, seconds: float) -> None:
            self.ends = time.monotonic() + seconds

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if time.monotonic() >= self.ends:
                control.should_training_stop = True
            return control

    return [Deadline(plan.minutes * 60)] if plan.minutes else []
