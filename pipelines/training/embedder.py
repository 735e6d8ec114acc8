"""Fine-tunes an embedding model on questions and the chunks that answer them.

The trainer of sentence-transformers does the work. Knows neither where chunks are stored nor whether the result will be
used. Heavy libraries are imported in functions.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from pipelines.embedding.tokens import TokenCounter, load_tokenizer, model_folder
from pipelines.evaluation.dataset import Example
from pipelines.records import Hit
from pipelines.training import card, fine_tuning, mining
from pipelines.training.card import GateVerdict, ModelFolder, Progress, TrainingResult, silent
from pipelines.training.fine_tuning import FineTuningPlan, FineTuningSelection
from pipelines.training.mining import Corpus, IndexedCollection, NothingToLearn, Triple
from pipelines.training.ranking import make_judging_set, prefixes_of, ranks_by_question

KIND = "embedding-model"
# Retrieved hits among which negatives are sought: more than a page usually has among the best.
MINED_FROM = 20
WORD = re.compile(r"[^\W\d_]\w{3,}")
# A word joins the vocabulary if the tokenizer cuts it into so many pieces, and it occurs so often in the corpus that a
# row of its own can be learned. Not tuned.
PIECES, AT_LEAST = 3, 20


class EmbedderPlan(FineTuningPlan):
    """The settings that decide the weights of an embedding model.

    The learning rate is the usual one of sentence-transformers, 2e-5; token embeddings alone bear 5 to 10 times as
    much, as each row is met seldom: 1e-4.
    """

    layers: Literal["all", "embeddings"] = Field("all", description="embeddings: train the token embeddings alone")
    learning_rate: float = Field(2e-5, gt=0, description="token embeddings alone: 1e-4")
    batch_size: int = Field(32, ge=2, description="questions; the other texts of a batch are negatives too")
    max_tokens: int = Field(0, ge=0, description="cut texts while training; 0: as the model does")
    new_words: int = Field(0, ge=0, description="words of the corpus to add to the vocabulary")

    @model_validator(mode="before")
    @classmethod
    def _take_usual_rate(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {"learning_rate": 1e-4, **values} if values.get("layers") == "embeddings" else values


class EmbedderSelection(FineTuningSelection):
    """The questions and chunks that an embedding model learns from and is judged by."""

    pool: int = Field(0, ge=0, description="chunks to judge among; 0: all")
    skip: int = Field(0, ge=0, description="pass over so many of the best wrong hits")


@dataclass(frozen=True, slots=True)
class EmbedderData:
    """The training set of an embedding model and the questions that judge it; `seconds` is the time to gather it."""

    base: TokenCounter
    collection: str
    corpus: Corpus
    train: Sequence[Example]
    held_out: Sequence[Example]
    triples: Sequence[Triple]
    selection: EmbedderSelection
    seconds: float


def gather_embedder_data(
    collection: IndexedCollection,
    examples: Sequence[Example],
    selection: EmbedderSelection,
    progress: Progress = silent,
) -> EmbedderData:
    """Return the training set, with negatives that the collection's own retrieval finds.

    Raises TrainerMissing, NothingToLearn, BadFolds, ModelNotFound and ModelUnsupported.
    """
    fine_tuning.check_trainer()
    started = time.monotonic()
    base = load_tokenizer(selection.model or collection.index.settings.model)
    if base.folder is None:
        raise NothingToLearn(f"{base.model} has no weights here: train a packaged model, a folder or a hub model")
    corpus = collection.corpus
    train, held_out = fine_tuning.divide(examples, corpus, selection)
    named = mining.describe_named(train)
    progress(f"{len(train):,} questions to learn from{named}, {len(held_out):,} to judge by")
    judging = mining.pages_of(held_out)

    def find_negatives(example: Example) -> list[Hit]:
        named = mining.named_negatives(example, corpus, judging, selection.negatives)
        hits = collection.retrieve(example.question, MINED_FROM + selection.skip)
        mined = mining.hard_negatives(example, hits, corpus, judging, selection.negatives, selection.skip)
        return mining.take_first(named, mined, selection.negatives)

    triples = mining.mine_triples(
        train, corpus, find_negatives, negatives=selection.negatives, read=mining.embedding_text, seed=selection.seed
    )
    seconds = time.monotonic() - started
    progress(f"{len(triples):,} triples mined in {seconds:.0f} s")
    return EmbedderData(base, collection.index.collection, corpus, train, held_out, triples, selection, seconds)


def train_embedder(
    data: EmbedderData,
    output: ModelFolder,
    plan: EmbedderPlan,
    *,
    device: str = "auto",
    accept: bool = False,
    progress: Progress = silent,
) -> TrainingResult:
    """Fine-tune, judge on the held-out pages, and put the model into `output`.

    An interrupted training continues from its last checkpoint. `accept` accepts the model whatever the verdict is.
    Raises TrainerMissing and NothingToLearn.
    """
    started = time.monotonic()
    verdict = _train_and_judge(data, output, plan, fine_tuning.choose_device(device), progress)
    entries = card.make_card(
        KIND,
        base={"model": data.base.model, "identity": data.base.identity, "dimension": data.base.dimension},
        examples=[*data.train, *data.held_out],
        verdict=verdict,
        settings={
            **plan.model_dump(),
            **data.selection.model_dump(include={"negatives", "skip", "pool"}),
            "triples": len(data.triples),
            "collection": data.collection,
        },
        accept=accept,
    )
    output.put(entries)
    figures = {"seconds": round(data.seconds + time.monotonic() - started, 1)}
    return TrainingResult(output.path, entries, str(verdict), figures)


def _train_and_judge(
    data: EmbedderData, output: ModelFolder, plan: EmbedderPlan, device: str, progress: Progress
) -> GateVerdict:
    """Save the trained model to `output.model`, with the evaluator's files, and return the verdict."""
    model = load_model(data.base.model, device)
    judging = make_judging_set(data.held_out, data.corpus, data.selection.pool, data.selection.seed)
    evaluation = output.training / "evaluation"
    before = ranks_by_question(model, judging, evaluation, "before")
    progress(f"judged before among {len(judging.texts):,} chunks; training")
    if plan.new_words:
        words = frequent_words([hit.text for hit in data.corpus.chunks], model, plan.new_words)
        progress(f"{extend_vocabulary(model, words):,} words join the vocabulary")
    fine_tune(model, data.triples, plan, output.checkpoints(data.base.identity))
    model.save(str(fine_tuning.clear(output.model)))
    after = ranks_by_question(model, judging, evaluation, "after")
    evaluation.replace(output.model / "evaluation")
    return card.judge_ranks([before[name] for name in judging.queries], [after[name] for name in judging.queries])


# ------------------------------------------------------------------------------------------- the model


def load_model(model: str, device: str = "cpu") -> Any:
    """Return the SentenceTransformer of a packaged name, folder or hub name. Raises ModelNotFound, ModelUnsupported."""
    from sentence_transformers import SentenceTransformer

    counter = load_tokenizer(model)
    loaded = SentenceTransformer(str(model_folder(model)), device=device, local_files_only=True)
    loaded.max_seq_length = counter.max_tokens
    return loaded


def train_only_embeddings(model: Any) -> None:
    """Freeze all weights except those of the token embeddings."""
    for weights in model.parameters():
        weights.requires_grad = False
    _token_embeddings(model).weight.requires_grad = True


def frequent_words(texts: Sequence[str], model: Any, most: int) -> list[str]:
    """Return up to `most` words of `texts` that the tokenizer cuts into pieces, by the tokens that they would save."""
    counts = Counter(word.lower() for text in texts for word in WORD.findall(text))
    frequent = [word for word, count in counts.items() if count >= AT_LEAST]
    pieces = {word: len(model.tokenizer.tokenize(word)) for word in frequent}
    cut = [word for word in frequent if pieces[word] >= PIECES]
    return sorted(cut, key=lambda word: (-counts[word] * (pieces[word] - 1), word))[:most]


def extend_vocabulary(model: Any, words: Sequence[str]) -> int:
    """Make each of `words` one token that begins as the mean of its pieces; return how many were new."""
    import torch
    from tokenizers import AddedToken

    tokenizer = model.tokenizer
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    before = len(tokenizer)
    tokenizer.add_tokens([AddedToken(word, single_word=True, normalized=True) for word in words])
    model[0].auto_model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    weights = _token_embeddings(model).weight
    with torch.no_grad():
        for word, parts in zip(words, pieces, strict=True):
            place = tokenizer.convert_tokens_to_ids(word)
            if place >= before:
                weights[place] = weights[parts].mean(dim=0)
    return len(tokenizer) - before


def _token_embeddings(model: Any) -> Any:
    return model[0].auto_model.get_input_embeddings()


# ------------------------------------------------------------------------------------------- training


def fine_tune(model: Any, triples: Sequence[Triple], plan: EmbedderPlan, checkpoints: Path) -> None:
    """Train `model` in place by MultipleNegativesRankingLoss over each triple and the others of its batch.

    (Henderson et al., 2017: every other text of the batch is a negative, the mined ones are too.) Continues from the
    last checkpoint of the same triples and plan. Raises TrainerMissing and NothingToLearn.
    """
    folder = fine_tuning.checkpoint_folder(checkpoints, triples, plan)
    from sentence_transformers import SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    if plan.layers == "embeddings":
        train_only_embeddings(model)
    own_limit, model.max_seq_length = model.max_seq_length, plan.max_tokens or model.max_seq_length
    columns = _columns(triples)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=_arguments(folder, plan, model, list(columns)),
        train_dataset=_dataset(columns),
        loss=MultipleNegativesRankingLoss(model),
    )
    fine_tuning.run_trainer(trainer, folder)
    model.max_seq_length = own_limit


def _columns(triples: Sequence[Triple]) -> dict[str, list[str]]:
    columns = {"anchor": [t.question for t in triples], "positive": [t.positive for t in triples]}
    for place in range(len(triples[0].negatives)):
        columns[f"negative_{place + 1}"] = [t.negatives[place] for t in triples]
    return columns


def _dataset(columns: Mapping[str, list[str]]) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(dict(columns))


def _arguments(folder: Path, plan: EmbedderPlan, model: Any, columns: Sequence[str]) -> Any:
    from sentence_transformers import SentenceTransformerTrainingArguments
    from sentence_transformers.base.sampler import BatchSamplers

    of_question, of_chunk = prefixes_of(model)
    prefixes = {"anchor": of_question, **dict.fromkeys(columns[1:], of_chunk)}
    return SentenceTransformerTrainingArguments(
        **fine_tuning.trainer_arguments(folder, plan, model.device.type == "cpu"),
        batch_sampler=BatchSamplers.NO_DUPLICATES,  # a copy of a question's answer would count as a negative
        prompts={name: text for name, text in prefixes.items() if text} or None,
    )
