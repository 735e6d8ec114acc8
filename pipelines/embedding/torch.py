"""Embeds with sentence-transformers on torch: any model stored in files, on a GPU if there is one."""

import warnings
from typing import Any

from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder
from pipelines.embedding.low_rank import change_weights
from pipelines.embedding.tokens import INT8, TokenCounter

# Texts per batch. CPU: 16 and 32 are equally fast, 8 and 100 slower (Ray docs, 2 threads). GPU: not tuned.
CPU_BATCH = 32
GPU_BATCH = 256


class TorchEmbedder(Embedder):
    """sentence-transformers on torch, fp16 on a GPU. `threads` sets torch's threads in the whole process."""

    def __init__(self, counter: TokenCounter, device: str, threads: int | None) -> None:
        super().__init__(counter)
        import torch

        self.device = available_device(device, torch.cuda.is_available())
        if threads:
            torch.set_num_threads(threads)
        self._batch_size = GPU_BATCH if self.device.startswith("cuda") else CPU_BATCH
        self._encoder = load_modules(counter, device=self.device)
        self._encoder.max_seq_length = counter.max_tokens
        if self.device.startswith("cuda"):
            self._encoder.half()

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        return self._encoder.encode(
            texts, prompt=prefix, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
        )


def load_modules(counter: TokenCounter, **options: Any) -> Any:
    """Return the SentenceTransformer of a folder; if it defines no pooling, it uses the pooling of `counter`."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling

    model = SentenceTransformer(str(counter.folder), local_files_only=True, **options)
    change_weights(counter.model.removeprefix(INT8), model[0].auto_model)
    if counter.pooling:  # a plain folder loads as a transformer with mean pooling
        model[1] = Pooling(counter.dimension, counter.pooling).to(model.device)
    return model


def available_device(device: str, cuda: bool) -> str:
    """Return the device to use: "auto" uses a GPU if there is one; a GPU that torch can't use becomes "cpu"."""
    if device == "auto":
        return "cuda" if cuda else "cpu"
    if device.startswith("cuda") and not cuda:
        warnings.warn(
            f"device is {device!r}, but torch sees no CUDA: embedding on the CPU instead. "
            "Install a CUDA build of torch and check `nvidia-smi`, or set the device to cpu.",
            RuntimeWarning,
            stacklevel=2,
        )
        return "cpu"
    return device
