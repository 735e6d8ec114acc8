"""An embedding model learns from questions and the chunks that answer them; the sentence-transformers trainer does it.

Knows neither where chunks are stored nor whether the result will be used. Heavy libraries are imported in functions.
"""

import importlib.util
import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pipelines.embedding.tokens import load_tokenizer, model_folder
from pipelines.evaluation.dataset import Example
from pipelines.records import digest
from pipelines.training.mining import Corpus, NothingToLearn, Triple, read_as

# Places beyond this count as not found; MRR hardly sees a difference.
DEPTH = 100
WORD = re.compile(r"[^\W\d_]\w{3,}")
# A word joins the vocabulary if the tokenizer cuts it into so many pieces, and it stands in the corpus so often that a
# row of its own can be learned. Not tuned.
PIECES, AT_LEAST = 3, 20


class TrainerMissing(RuntimeError):
    """The libraries that the trainer needs are not installed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is trained.

    `layers` "embeddings" trains the token embeddings alone: the rest of the network stays as it is. `max_tokens` cuts
    texts while training (0: as much as the model reads). `precision` "fp16" and "bf16" are for GPUs. `new_words` is
    how many of the corpus's own words may join the vocabulary.

    The learning rate is the usual one for sentence-transformers (2e-5); token embeddings alone bear 5 to 10 times as
    much, as each row is met seldom.
    """

    layers: Literal["all", "embeddings"] = "all"
    epochs: float = 1.0
    batch_size: int = 32
    learning_rate: float = 2e-5
    warmup: float = 0.1
    max_tokens: int = 0
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    new_words: int = 0
    seed: int = 0
    checkpoint_steps: int = 20


# ------------------------------------------------------------------------------------------- the model


def load_model(model: str, device: str = "cpu") -> Any:
    """The SentenceTransformer of a packaged name, folder or hub name. Raises ModelNotFound, ModelUnsupported."""
    from sentence_transformers import SentenceTransformer

    counter = load_tokenizer(model)
    loaded = SentenceTransformer(str(model_folder(model)), device=device, local_files_only=True)
    loaded.max_seq_length = counter.max_tokens
    return loaded


def train_only_embeddings(model: Any) -> None:
    """Freeze all weights but those of the token embeddings."""
    for weights in model.parameters():
        weights.requires_grad = False
    _token_embeddings(model).weight.requires_grad = True


def frequent_words(texts: Sequence[str], model: Any, most: int) -> list[str]:
    """Up to `most` words of `texts` that the tokenizer cuts into pieces, those first that would save most tokens."""
    counts = Counter(word.lower() for text in texts for word in WORD.findall(text))
    frequent = [word for word, count in counts.items() if count >= AT_LEAST]
    pieces = {word: len(model.tokenizer.tokenize(word)) for word in frequent}
    cut = [word for word in frequent if pieces[word] >= PIECES]
    return sorted(cut, key=lambda word: (-counts[word] * (pieces[word] - 1), word))[:most]


def extend_vocabulary(model: Any, words: Sequence[str]) -> int:
    """Make each of `words` one token; its embedding begins as the mean of its pieces'. Returns how many were new."""
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


def fine_tune(model: Any, triples: Sequence[Triple], plan: Plan, checkpoints: Path) -> None:
    """Train `model` in place by MultipleNegativesRankingLoss over each triple and the others of its batch.

    (Henderson et al., 2017: every other text of the batch is a wrong answer, the mined negatives are too.) What was
    interrupted goes on from the last checkpoint of the same triples and plan. Raises TrainerMissing.
    """
    check_trainer()
    from sentence_transformers import SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers.trainer_utils import get_last_checkpoint

    if not triples:
        raise NothingToLearn("no question has both an answering chunk and retrieved chunks that do not answer it")
    if plan.layers == "embeddings":
        train_only_embeddings(model)
    folder = checkpoints / _name(triples, plan)
    folder.mkdir(parents=True, exist_ok=True)
    reads, model.max_seq_length = model.max_seq_length, plan.max_tokens or model.max_seq_length
    columns = _columns(triples)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=_arguments(folder, plan, model, list(columns)),
        train_dataset=_dataset(columns),
        loss=MultipleNegativesRankingLoss(model),
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))  # type: ignore[no-untyped-call]
    model.max_seq_length = reads


def check_trainer() -> None:
    """Raise TrainerMissing unless the trainer's libraries are installed."""
    missing = [name for name in ("accelerate", "datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise TrainerMissing(f"training an embedding model needs {' and '.join(missing)}: pip install raydex[train]")


def _name(triples: Sequence[Triple], plan: Plan) -> str:
    """Where the checkpoints of these triples and this plan lie."""
    return digest(json.dumps(asdict(plan)), *(json.dumps(asdict(triple)) for triple in triples))[:16]


def _columns(triples: Sequence[Triple]) -> dict[str, list[str]]:
    columns = {"anchor": [t.question for t in triples], "positive": [t.positive for t in triples]}
    for place in range(len(triples[0].negatives)):
        columns[f"negative_{place + 1}"] = [t.negatives[place] for t in triples]
    return columns


def _dataset(columns: Mapping[str, list[str]]) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(dict(columns))


def _arguments(folder: Path, plan: Plan, model: Any, columns: Sequence[str]) -> Any:
    from sentence_transformers import SentenceTransformerTrainingArguments
    from sentence_transformers.base.sampler import BatchSamplers

    of_question, of_chunk = _prefixes(model)
    words = {"anchor": of_question, **dict.fromkeys(columns[1:], of_chunk)}
    return SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=plan.epochs,
        per_device_train_batch_size=plan.batch_size,
        learning_rate=plan.learning_rate,
        warmup_steps=plan.warmup,
        fp16=plan.precision == "fp16",
        bf16=plan.precision == "bf16",
        use_cpu=model.device.type == "cpu",
        seed=plan.seed,
        data_seed=plan.seed,
        batch_sampler=BatchSamplers.NO_DUPLICATES,  # a copy of a question's answer would count as a wrong one
        prompts={name: text for name, text in words.items() if text} or None,
        save_steps=plan.checkpoint_steps,
        save_total_limit=2,
        logging_steps=10,
        report_to="none",
    )


def _prefixes(model: Any) -> tuple[str, str]:
    """What is put before questions and before chunks, as TokenCounter has it."""
    prompts = model.prompts or {}
    usual = prompts.get(model.default_prompt_name, "")
    return prompts.get("query") or usual, prompts.get("document") or prompts.get("passage") or usual


# ------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Questions a model is judged by: among which texts it searches, and which of them are on the reference pages."""

    queries: Mapping[str, str]
    texts: Mapping[str, str]
    relevant: Mapping[str, set[str]]


def held_out(examples: Sequence[Example], corpus: Corpus, candidates: int, seed: int = 0) -> HeldOut:
    """The chunks that answer the examples and others drawn by `seed`, `candidates` in all (0: every chunk).

    Relevant is what lies on a reference page, as in retrieval_score. Drawn, not retrieved: chunks that the model of
    before finds would be a harder test for it than for the one after.
    """
    needed = {place for example in examples for place in corpus.answering(example)}
    others = [place for place in range(len(corpus.chunks)) if place not in needed]
    room = len(others) if candidates == 0 else max(0, min(candidates - len(needed), len(others)))
    among = sorted(needed | set(random.Random(seed).sample(others, room)))
    texts = {str(place): read_as(corpus.chunks[place]) for place in among}
    return HeldOut(
        {example.id: example.question for example in examples},
        texts,
        {example.id: {str(place) for place in corpus.on_pages(example)} & texts.keys() for example in examples},
    )


def ranks(model: Any, judged: HeldOut, folder: Path, name: str, batch_size: int = 32) -> dict[str, int]:
    """For each question the place of the first relevant text, from 1; 0 if it is not among the first DEPTH.

    By sentence-transformers' InformationRetrievalEvaluator, which leaves its metrics and predictions in `folder`.
    """
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    of_question, of_chunk = _prefixes(model)
    evaluator = InformationRetrievalEvaluator(
        dict(judged.queries),
        dict(judged.texts),
        dict(judged.relevant),
        accuracy_at_k=[1, 5, 9, 18],
        mrr_at_k=[DEPTH],
        map_at_k=[DEPTH],
        batch_size=batch_size,
        name=name,
        query_prompt=of_question,
        corpus_prompt=of_chunk,
        write_predictions=True,
        score_functions={model.similarity_fn_name: model.similarity},
    )
    folder.mkdir(parents=True, exist_ok=True)
    evaluator(model, output_path=str(folder))
    (path,) = folder.glob(f"*_{name}_predictions_*.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["query_id"]: _first(row["results"], judged.relevant[row["query_id"]]) for row in rows}


def _first(results: Sequence[Mapping[str, Any]], relevant: set[str]) -> int:
    return next((place for place, found in enumerate(results, 1) if found["corpus_id"] in relevant), 0)
