"""Embeds with sentence-transformers on torch: any model of files, on a GPU if there is one."""

import warnings
from typing import Any

from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder
from pipelines.embedding.tokens import TokenCounter

# Texts in a batch. CPU: 16 and 32 are equally fast, 8 and 100 slower (Ray docs, 2 threads). GPU: not tuned.
CPU_BATCH = 32
GPU_BATCH = 256


class TorchEmbedder(Embedder):
    """sentence-transformers on torch, fp16 on a GPU. `threads` sets torch's threads in the whole process."""

    def __init__(self, counter: TokenCounter, device: str, threads: int | None, batch_size: int | None) -> None:
        super().__init__(counter)
        import torch
        from sentence_transformers import SentenceTransformer

        self.device = available_device(device, torch.cuda.is_available())
        if threads:
            torch.set_num_threads(threads)
        self._batch_size = batch_size or (GPU_BATCH if self.device.startswith("cuda") else CPU_BATCH)
        self._encoder = SentenceTransformer(str(counter.folder), device=self.device, local_files_only=True)
        self._encoder.max_seq_length = counter.max_tokens
        if self.device.startswith("cuda"):
            self._encoder.half()

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        return self._encoder.encode(
            texts,
            prompt=prefix,
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )


def available_device(device: str, cuda: bool) -> str:
    """Return the device to use: "auto" takes a GPU if there is one; a GPU that torch can't use becomes "cpu"."""
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
