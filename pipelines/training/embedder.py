"""The embedding model, fine-tuned on questions and the chunks that answer them.

Uses the trainer of sentence-transformers. Heavy libraries are imported in functions.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.tokens import TokenCounter, untruncated_tokenizer
from pipelines.embedding.torch import load_modules
from pipelines.evaluation.dataset import read_answerable
from pipelines.page.stored import plain_of
from pipelines.text.counts import counted
from pipelines.training import fine_tuning, mining
from pipelines.training.fine_tuning import FineTuningData, FineTuningPlan
from pipelines.training.mining import Corpus, NegativeDraw, Triple
from pipelines.training.ranking import JudgingSet, judge_ranks, make_judging_set, prefixes_of, ranks_by_question
from pipelines.training.run import ModelKind, TrainingOrder, TrainingScores, Workplace
from pipelines.training.vocabulary import extend_vocabulary, frequent_words, token_embeddings

# Negatives are taken from this many retrieved hits, more than one page usually has among the best.
MINED_FROM = 20


class EmbedderPlan(FineTuningPlan):
    """Settings for training and judging an embedding model.

    The learning rate is the usual one of sentence-transformers, 2e-5. Token embeddings tolerate 5 to 10 times as much,
    because each row is seldom updated: 1e-4. Low-rank changes start at 0 and take 1e-3, as for all-MiniLM-L6-docs-v1.
    """

    layers: Literal["all", "embeddings"] = Field("all", description="embeddings: train only the token embeddings")
    low_rank: int = Field(
        0, ge=0, description="train low-rank changes of this rank per layer (LoRA); 0: train the weights"
    )
    new_words: int = Field(0, ge=0, description="maximum number of corpus words to add to the vocabulary")
    learning_rate: float = Field(2e-5, gt=0, description="only token embeddings: 1e-4; low rank: 1e-3")
    batch_size: int = Field(32, ge=2, description="questions per batch; other passages of the batch are negatives too")
    max_tokens: int = Field(0, ge=0, description="length limit of passages while training; 0: the model's limit")
    pool: int = Field(0, ge=0, description="number of chunks to judge against; 0: all")
    skip: int = Field(0, ge=0, description="number of best wrong hits to skip")

    @model_validator(mode="before")
    @classmethod
    def _take_usual_rate(cls, values: dict[str, Any]) -> dict[str, Any]:
        if str(values.get("low_rank", 0)) != "0":
            return {"learning_rate": 1e-3, **values}
        return {"learning_rate": 1e-4, **values} if values.get("layers") == "embeddings" else values

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        if self.low_rank and self.layers == "embeddings":
            raise ValueError("--low-rank trains the layers of the encoder, --layers embeddings the tokens: give one")
        return self


EmbedderData = FineTuningData[EmbedderPlan, JudgingSet]


class BadRank(ValueError):
    """The rank is not a low rank for this model."""


class EmbedderKind(ModelKind[EmbedderPlan, EmbedderData, None]):
    """Judged by vector search only, on the questions of held-out pages."""

    name, card, plan = "embedder", "embedding-model", EmbedderPlan
    help = "the embedding model of an index"

    def load(self, order: TrainingOrder, plan: EmbedderPlan) -> EmbedderData:
        """Return the training set, with negatives from the collection's own retrieval. Raises TrainerMissing."""
        fine_tuning.check_trainer()
        examples = read_answerable(order.dataset)
        with order.open_collection() as collection:
            base = fine_tuning.base_model(plan.model or collection.index.settings.model)
            check_rank(plan, base)
            corpus = collection.corpus
            train, held_out = fine_tuning.divide(examples, corpus, plan)
            named = mining.describe_named(train)
            order.progress(f"{counted(len(train), 'question')} to learn from{named}, {len(held_out):,} to judge by")
            depth, judging_pages = MINED_FROM + plan.skip, mining.pages_of(held_out)
            draw = NegativeDraw(
                corpus, lambda asked: collection.retrieve(asked, depth), plan.negatives, judging_pages, skip=plan.skip
            )
            triples = mining.mine_triples(train, draw, mining.embedding_text, plan.seed)
            words = new_words(corpus, base, plan.new_words)
        order.progress(f"{counted(len(triples), 'triple')} mined")
        judging = make_judging_set(held_out, corpus, plan.pool, plan.seed)
        return FineTuningData(plan, base, collection.index.collection, train, held_out, triples, judging, words)

    def fit(self, data: EmbedderData, workplace: Workplace) -> None:
        """Fine-tune; an interrupted training resumes from its last checkpoint."""
        model, plan = load_model(data.base.model, fine_tuning.choose_device(data.plan.device)), data.plan
        if plan.new_words:
            workplace.say(f"{counted(extend_vocabulary(model, data.words), 'word joins', 'words join')} the vocabulary")
        checkpoints = workplace.checkpoints(" ".join([data.base.identity, *data.words]))
        fine_tune(model, data.triples, plan, checkpoints)
        model.save(str(workplace.model))

    def judge(self, data: EmbedderData, model: None, workplace: Workplace) -> TrainingScores:
        """Compare the saved model with its base on a pool of chunks; the evaluator's files stay with the model."""
        plan, evaluation = data.plan, workplace.model / "evaluation"
        judging = data.judging
        workplace.say(f"judging among {counted(len(judging.texts), 'chunk')}")
        device, ranks = fine_tuning.choose_device(plan.device), []
        for name, path in (("before", data.base.model), ("after", str(workplace.model))):
            found = ranks_by_question(load_model(path, device), judging, evaluation, name)
            ranks.append([found[query] for query in judging.queries])
        verdict = judge_ranks(ranks[0], ranks[1])
        entries = data.card_entries(
            verdict, ("model", "identity", "dimension"), triples=len(data.triples), words=len(data.words)
        )
        return TrainingScores(verdict.accepted, entries, verdict.described(), {})


def check_rank(plan: EmbedderPlan, base: TokenCounter) -> None:
    """Raise BadRank for a rank that saves nothing."""
    if base.dimension and plan.low_rank >= base.dimension:
        raise BadRank(
            f"--low-rank is {plan.low_rank}, and the vectors of {base.model} have "
            f"{counted(base.dimension, 'dimension')}: take a "
            "lower rank (16 is usual), or leave it out to train whole layers"
        )


def new_words(corpus: Corpus, base: TokenCounter, most: int) -> tuple[str, ...]:
    """Return up to `most` frequent words of the corpus that the base model's tokenizer splits."""
    if not most or base.folder is None:
        return ()
    texts = (plain_of(hit) for hit in corpus.chunks)
    return tuple(frequent_words(texts, untruncated_tokenizer(base.folder), most))


def load_model(model: str, device: str = "cpu") -> Any:
    """Return the SentenceTransformer of a packaged name, folder or hub name. Raises ModelNotFound, ModelUnsupported."""
    counter = load_tokenizer(model)
    loaded = load_modules(counter, device=device)
    loaded.max_seq_length = counter.max_tokens
    return loaded


def fine_tune(model: Any, triples: Sequence[Triple], plan: EmbedderPlan, checkpoints: Path) -> None:
    """Train `model` in place with MultipleNegativesRankingLoss over each triple and the others of its batch.

    All other texts of the batch are negatives, in addition to the mined ones (Henderson et al., 2017). Resumes from the
    last checkpoint of the same triples and plan. Raises TrainerMissing and NothingToLearn.
    """
    folder = fine_tuning.checkpoint_folder(checkpoints, triples, plan)
    fine_tuning.check_triples(triples)
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    merge = choose_weights(model, plan)
    own_limit, model.max_seq_length = model.max_seq_length, plan.max_tokens or model.max_seq_length
    columns = {"anchor": [t.question for t in triples], "positive": [t.positive for t in triples]}
    for place in range(len(triples[0].negatives)):
        columns[f"negative_{place + 1}"] = [t.negatives[place] for t in triples]
    trainer = SentenceTransformerTrainer(
        model=model,
        args=_arguments(folder, plan, model, list(columns)),
        train_dataset=Dataset.from_dict(dict(columns)),
        loss=MultipleNegativesRankingLoss(model),
    )
    fine_tuning.run_trainer(trainer, folder)
    model.max_seq_length = own_limit
    merge()


def choose_weights(model: Any, plan: EmbedderPlan) -> Callable[[], None]:
    """Make only the weights trainable that `plan` names; return a function that merges low-rank changes into the model.

    With low-rank changes, new words are trained too.
    """
    if not plan.low_rank:
        if plan.layers == "embeddings":
            model.requires_grad_(False)
            token_embeddings(model).weight.requires_grad = True
        return lambda: None
    import torch

    from pipelines.training.low_rank import add_thin_changes, merge_thin_changes

    torch.manual_seed(plan.seed)
    changes = add_thin_changes(model, plan.low_rank)
    if plan.new_words:
        token_embeddings(model).weight.requires_grad = True
    return lambda: merge_thin_changes(model, changes)


def _arguments(folder: Path, plan: EmbedderPlan, model: Any, columns: Sequence[str]) -> Any:
    from sentence_transformers import SentenceTransformerTrainingArguments
    from sentence_transformers.base.sampler import BatchSamplers

    of_question, of_chunk = prefixes_of(model)
    prefixes = {"anchor": of_question, **dict.fromkeys(columns[1:], of_chunk)}
    arguments = fine_tuning.trainer_arguments(folder, plan, model.device.type == "cpu")
    if plan.low_rank:  # a checkpoint has whole layers, which could not be loaded into these
        arguments["save_strategy"] = "no"
    return SentenceTransformerTrainingArguments(
        **arguments,
        batch_sampler=BatchSamplers.NO_DUPLICATES,  # a duplicate of a question's answer would count as a negative
        prompts={name: text for name, text in prefixes.items() if text} or None,
    )
