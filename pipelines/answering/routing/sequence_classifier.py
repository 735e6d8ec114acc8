"""Classifies texts with a transformer and a classification head, in transformers' format.

This module works with texts, labels and probabilities. It doesn't know how the head was trained or what a label means.
Heavy libraries are imported inside functions.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.routing.classifier import Classifier
from pipelines.answering.routing.classifier_folder import NotAClassifier, read_classifier_card
from pipelines.files.model_cards import VERSION, write_card
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.counts import counted

BATCH = 32
MAX_TOKENS = 128  # longer questions are truncated


class SequenceClassifier(Classifier):
    """An AutoModelForSequenceClassification and its tokenizer, with one output per label in `labels`."""

    def __init__(
        self, model: Any, tokenizer: Any, labels: Sequence[str], metadata: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(labels, metadata)
        self._model, self._tokenizer = model.eval(), tokenizer
        self._lock = threading.Lock()  # a tokenizer is not re-entrant

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one row per text and one column per label, in the order of `labels`; rows sum to 1."""
        import torch

        rows = [np.empty((0, len(self.labels)))]
        for start in range(0, len(texts), BATCH):
            with self._lock, torch.inference_mode():
                read = tokenize(self._tokenizer, self._model, texts[start : start + BATCH], padding=True)
                logits = self._model(**read.to(self._model.device)).logits
            rows.append(logits.double().softmax(dim=1).cpu().numpy())
        return np.concatenate(rows)

    def save(self, folder: Path, entries: Mapping[str, Any]) -> None:
        """Write the model and its tokenizer into `folder`, then its card with the extra `entries`."""
        folder.mkdir(parents=True, exist_ok=True)
        self._model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)
        write_card(folder, {**entries, "labels": list(self.labels), "version": VERSION})

    @classmethod
    def load(cls, folder: Path, kind: str, device: str = "cpu") -> "SequenceClassifier":
        """Return the classifier of this `kind` that `save` wrote to `folder`. Raises NotAClassifier."""
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        from pipelines.embedding.torch import available_device

        card = read_classifier_card(folder, kind)
        try:
            model = AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, use_safetensors=True
            )
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # the library may raise anything: OSError, ValueError, KeyError …
            raise NotAClassifier(folder, f"its model does not load ({type(error).__name__}: {error})") from error
        if model.config.num_labels != len(card["labels"]):
            raise NotAClassifier(
                folder,
                f"the card names {counted(len(card['labels']), 'label')}, the model has {model.config.num_labels}",
            )
        import torch

        device = available_device(device, torch.cuda.is_available())
        return cls(model.to(device), tokenizer, [str(label) for label in card["labels"]], card["metadata"])


def tokenize(tokenizer: Any, model: Any, texts: Sequence[str], **options: Any) -> Any:
    """Return `texts` tokenized for `model`, truncated to MAX_TOKENS or to the positions that it allows."""
    positions = getattr(model.config, "max_position_embeddings", MAX_TOKENS)
    most = max(1, min(MAX_TOKENS, tokenizer.model_max_length, positions - 2))  # two positions are special in some
    tensors = "pt" if options.get("padding") else None
    cleaned = [clean_for_tokenizer(text) for text in texts]
    return tokenizer(cleaned, truncation=True, max_length=most, return_tensors=tensors, **options)
