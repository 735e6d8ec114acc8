"""Checks embedding models: the files exist as installed, load, and embed one text."""

import base64
import contextlib
import io
import time
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from pipelines.diagnosis.check import Finding, failed, fine, warning
from pipelines.embedding import EmbeddingFailed, ModelNotFound, ModelUnsupported, TokenCounter, load_tokenizer
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.load import is_here, is_remote, load_embedder, prefixes_missing_from, runs_int8
from pipelines.embedding.onnx.export import export_path
from pipelines.embedding.tokens import INT8, PACKAGED, file_digest, weights_digest
from pipelines.records import EmbeddingModel
from pipelines.text.counts import counted

TEXT = "How do I find the documentation?"


class ModelCheck:
    """Checks embedding models; `endpoint` makes the embedder of an `openai:` one. Writes no export into `cache`."""

    def __init__(self, cache: Path, endpoint: Callable[[EmbeddingModel], Embedder]) -> None:
        self._cache, self._endpoint = cache, endpoint
        self._dimensions: dict[str, int] = {}

    def dimensions(self, model: str) -> int:
        """Return the dimensions of a checked model's vectors, 0 for any other model."""
        return self._dimensions.get(model, 0)

    def check(self, model: EmbeddingModel) -> Iterator[Finding]:
        """Check one model as an index uses it."""
        if not is_here(model.name):
            yield warning(
                f"{model.name} is not on this machine", "its first use downloads it from the Hugging Face hub"
            )
            return
        try:
            embedder, about = self._load(model)
            yield from self._embed(embedder, about)
            if missing := prefixes_missing_from(model):
                yield warning(missing, "`raydex index --collection NAME …`")
        except (ModelNotFound, ModelUnsupported) as error:
            yield failed(str(error), "correct the model, or index with another: `raydex index … --model NAME`")
        except EmbeddingFailed as error:
            yield failed(str(error), _remedy_for(model.name))

    def _load(self, model: EmbeddingModel) -> tuple[Embedder, str]:
        """Return the embedder of a model, and where its files are. Raises ModelNotFound, ModelUnsupported."""
        if is_remote(model.name):
            return self._endpoint(model), "at its endpoint"
        counter = load_tokenizer(model)
        if counter.folder is None:
            return load_embedder(model), "without files"
        return self._load_files(model, counter, counter.folder)

    def _load_files(self, model: EmbeddingModel, counter: TokenCounter, folder: Path) -> tuple[Embedder, str]:
        if damaged := list(damaged_files(counter.model, folder)):
            raise ModelUnsupported(f"{', '.join(damaged)} of {counter.model} was changed since its installation")
        exported = export_path(counter, self._cache, runs_int8(counter.model)).is_file()
        with contextlib.redirect_stderr(io.StringIO()):  # torch's progress bar
            embedder = load_embedder(model, device="cpu", cache=self._cache if exported else None)
        return embedder, f"{weights_digest(folder)[:12]} in {folder}, on {'ONNX Runtime' if exported else 'torch'}"

    def _embed(self, embedder: Embedder, about: str) -> Iterator[Finding]:
        embedder.embed_query(TEXT)  # the first question takes longer than all others
        began = time.perf_counter()
        vector = embedder.embed_query(TEXT)
        taken = 1000 * (time.perf_counter() - began)
        self._dimensions[embedder.model] = len(vector)
        yield fine(f"{embedder.model} {about}: {counted(len(vector), 'dimension')}, a question in {taken:.0f} ms")


def damaged_files(model: str, folder: Path) -> Iterator[str]:
    """Yield the files of a packaged model that differ from the digests in its package."""
    for path, digest in recorded_digests(model):
        if folder.resolve() not in path.resolve().parents:
            continue
        if not path.is_file():
            yield f"{path.name} (missing)"
        elif _sha256(path) != digest:
            yield path.name


def recorded_digests(model: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a model's package with their digests, as the installer recorded them."""
    package = _package(model)
    for file in (package.files or []) if package else []:
        if file.hash is not None and file.hash.mode == "sha256":
            yield Path(str(file.locate())).resolve(), file.hash.value


def _package(model: str) -> Distribution | None:
    try:
        return distribution(PACKAGED.get(model.removeprefix(INT8), "").replace("_", "-"))
    except (PackageNotFoundError, ValueError):
        return None


def _sha256(path: Path) -> str:
    """Return the digest of a file in the format of a package's RECORD."""
    return base64.urlsafe_b64encode(file_digest(path)).decode().rstrip("=")


def _remedy_for(model: str) -> str:
    if is_remote(model):
        return "set RAYDEX_EMBEDDING_URL and RAYDEX_EMBEDDING_KEY (or OPENAI_BASE_URL, OPENAI_API_KEY) for its endpoint"
    return "install Raydex again"
