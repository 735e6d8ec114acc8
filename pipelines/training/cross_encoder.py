"""The reranker: a small cross-encoder that starts from an embedding model's weights and a new head.

Heavy libraries are imported in functions.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pipelines.answering.reranking.base import document
from pipelines.answering.reranking.cross_encoder import CrossEncoderReranker
from pipelines.embedding.load import load_tokenizer
from pipelines.evaluation.dataset import read_answerable
from pipelines.evaluation.questions.feedback import from_ratings
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact
from pipelines.training import fine_tuning, mining
from pipelines.training.fine_tuning import FineTuningData, FineTuningPlan
from pipelines.training.mining import NegativeDraw, Triple
from pipelines.training.ranking import JudgingHits, judge_ranks
from pipelines.training.run import ModelKind, RerankingPlan, TrainingOrder, TrainingScores, Workplace

KS = (1, 3, 5, 9, 18)
# Negatives are taken from this many retrieved hits: enough even if one page has many of the best.
MINED_FROM = 60


class RerankerPlan(FineTuningPlan, RerankingPlan):
    """Settings for training and judging a cross-encoder.

    `loss` "binary" scores each pair separately (binary cross-entropy; the weight of the right ones balances the wrong
    ones). "listwise" scores a question's passages together (ListNet; Cao et al., 2007). The usual learning rate for
    cross-encoders of this size is 2e-5 to 5e-5; the new head needs the upper end.
    """

    loss: Literal["binary", "listwise"] = Field(
        "binary", description="loss of each pair, or of all passages of a question"
    )
    learning_rate: float = Field(5e-5, gt=0, description="usually 2e-5 to 5e-5")
    batch_size: int = Field(16, ge=1, description="pairs per batch, or questions if listwise")
    max_tokens: int = Field(192, ge=16, description="maximum length of question and passage together")
    minutes: float = Field(0.0, ge=0, description="stop training after this time and keep the result; 0: never")
    questions: int = Field(2_000, ge=0, description="questions to learn from; 0: all")
    held_out: int = Field(200, ge=0, description="held-out questions to judge by; 0: all")
    negatives: int = Field(4, ge=1, description="wrong answers mined for each question")
    feedback: bool = Field(False, description="learn from ratings of the service's answers too")


RerankerData = FineTuningData[RerankerPlan, JudgingHits]


class RerankerKind(ModelKind[RerankerPlan, RerankerData, int]):
    """Judged by the hits of held-out questions in the order that readers see, before and after reranking."""

    name, card, plan = "reranker", "cross-encoder", RerankerPlan
    help = "a cross-encoder that reranks hits"

    def load(self, order: TrainingOrder, plan: RerankerPlan) -> RerankerData:
        """Return the training set, with negatives from the collection's own retrieval. Raises TrainerMissing."""
        fine_tuning.check_trainer()
        examples = read_answerable(order.dataset)
        with order.open_collection() as collection:
            corpus, index = collection.corpus, collection.index
            train, held_out = fine_tuning.divide(examples, corpus, plan)
            feedback = from_ratings(collection.ratings() if plan.feedback else [])
            liked = [example for example in feedback.examples if corpus.answering(example)]
            train = [*train, *mining.select_apart(liked, held_out)]
            draw = NegativeDraw(
                corpus,
                lambda question: collection.retrieve(question, MINED_FROM),
                plan.negatives,
                mining.pages_of(held_out),
                plan.seed,
                disliked=mining.disliked_hits(feedback, corpus),
            )
            triples = mining.mine_triples(train, draw, document, plan.seed)
            judging = JudgingHits.retrieve(collection, held_out, plan.depth)
        order.progress(
            f"{counted(len(triples), 'question')} mined{mining.describe_named(train)}, {len(held_out):,} to judge by"
        )
        base = load_tokenizer(plan.model or index.settings.model)
        return FineTuningData(plan, base, index.collection, train, held_out, triples, judging)

    def fit(self, data: RerankerData, workplace: Workplace) -> int:
        """Fine-tune and return the number of steps; an interrupted training resumes from its last checkpoint."""
        plan = data.plan
        model = load_model(data.base.model, fine_tuning.choose_device(plan.device), plan.max_tokens)
        steps = fine_tune(model, data.triples, plan, workplace.checkpoints(data.base.identity))
        model.save_pretrained(str(workplace.model))
        workplace.say(f"trained for {counted(steps, 'step')}; judging")
        return steps

    def judge(self, data: RerankerData, model: int, workplace: Workplace) -> TrainingScores:
        """Judge the saved model."""
        plan, started = data.plan, time.monotonic()
        device = fine_tuning.choose_device(plan.device)
        reranker = CrossEncoderReranker(str(workplace.model), device=device, max_length=plan.max_tokens)
        after = data.judging.ranks(reranker)
        latency = (time.monotonic() - started) / len(after)
        verdict = judge_ranks(data.judging.ranks(), after, k=plan.k, ks=sorted({*KS, plan.k}))
        entries = data.card_entries(verdict, ("model", "identity"), steps=model)
        scores = [*verdict.described(), Fact("time", f"{latency:.2f} s to rerank {counted(plan.depth, 'hit')}")]
        return TrainingScores(verdict.accepted, entries, scores, {"rerank_s": latency})


def load_model(model: str, device: str = "cpu", max_tokens: int = 0) -> Any:
    """Return the encoder of a packaged name, folder or hub name, with a head that outputs one score.

    The head is new unless `model` is already a cross-encoder. Raises ModelNotFound, ModelUnsupported, NothingToLearn.
    """
    from sentence_transformers import CrossEncoder

    encoder = CrossEncoder(
        str(fine_tuning.base_model(model).folder), num_labels=1, device=device, local_files_only=True
    )
    if max_tokens:
        encoder.max_seq_length = min(max_tokens, encoder.max_seq_length or max_tokens)
    return encoder


def fine_tune(model: Any, triples: Sequence[Triple], plan: RerankerPlan, checkpoints: Path) -> int:
    """Train `model` in place and return the total number of steps.

    Resumes from the last checkpoint of the same triples and plan. Raises TrainerMissing and NothingToLearn.
    """
    folder = fine_tuning.checkpoint_folder(checkpoints, triples, plan)
    fine_tuning.check_triples(triples)
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

    arguments = fine_tuning.trainer_arguments(folder, plan, model.device.type == "cpu")
    trainer = CrossEncoderTrainer(
        model=model,
        args=CrossEncoderTrainingArguments(**arguments),
        train_dataset=_dataset(triples, plan),
        loss=_loss(model, triples, plan),
        callbacks=fine_tuning.deadline(plan.minutes),
    )
    return fine_tuning.run_trainer(trainer, folder)


def _dataset(triples: Sequence[Triple], plan: RerankerPlan) -> Any:
    """Return one row per pair, or for the listwise loss one row per question."""
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


def _loss(model: Any, triples: Sequence[Triple], plan: RerankerPlan) -> Any:
    import torch
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, ListNetLoss

    if plan.loss == "listwise":
        return ListNetLoss(model)
    return BinaryCrossEntropyLoss(model, pos_weight=torch.tensor(float(len(triples[0].negatives))))
