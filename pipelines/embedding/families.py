"""Knows from families.yaml the requirements of embedding models that their own files may not state.

Matches only names: the model's, its folder's and its base model's. Knows no tokens and no vectors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.records import EmbeddingModel
from pipelines.text.parsing import parse_json
from pipelines.text.phrases import compile_phrases, read_table

_TABLE = read_table(__name__)
_PATTERNS = compile_phrases(_TABLE)


@dataclass(frozen=True, slots=True)
class Family:
    """The requirements of a model family: prefixes (None if unknown), pooling, token limit (0: none).

    `owner` is their owner on the Hugging Face hub.
    """

    query: str | None = None
    chunk: str | None = None
    pooling: str | None = None
    tokens: int = 0
    owner: str = ""


NO_FAMILY = Family("", "")
_FAMILIES = {
    name: Family(**fields | {"tokens": int(fields.get("tokens", 0))}) for name, fields in _TABLE["families"].items()
}


def family_of(model: str, folder: Path | None = None) -> Family:
    """Return the family of a model by its name, else by the name of its folder or base model."""
    for name in map(_last_part, (model, *(_names_in(folder) if folder else ()))):
        for family, pattern in _PATTERNS.items():
            if pattern.search(name):
                return _FAMILIES[family]
    return NO_FAMILY


def complete(model: EmbeddingModel, folder: Path | None, has_prefixes: bool) -> EmbeddingModel:
    """Return `model` with missing values filled in from its family.

    `has_prefixes` means that the folder's own settings have prefixes, which then are the only ones.
    """
    family, given = family_of(model.name, folder), (model.query_prefix, model.chunk_prefix)
    needs = not has_prefixes and (family.query or family.chunk)
    known = (family.query, family.chunk) if needs else (None, None)
    query, chunk = (own if own is not None else need for own, need in zip(given, known, strict=True))
    unpooled = folder is not None and not (folder / "modules.json").is_file()
    return EmbeddingModel(model.name, query, chunk, model.pooling or (family.pooling if unpooled else None))


def missing_prefixes(model: EmbeddingModel, folder: Path | None, has_prefixes: bool) -> str:
    """Return a message about prefixes that `model` needs but is used without, "" if none."""
    family = family_of(model.name, folder)
    if has_prefixes or family.query == family.chunk == "" or (model.query_prefix, model.chunk_prefix) != (None, None):
        return ""
    if family.query is None:
        return (
            f"{model.name} needs prefixes that are not known: give --query-prefix and --chunk-prefix as its card says"
        )
    return (
        f"{model.name} is used without its prefixes {family.query!r} and {family.chunk!r}: `raydex index` embeds again"
    )


def _names_in(folder: Path) -> Iterable[str]:
    """Yield the name of a model's folder and, if stated, of its base model."""
    yield folder.resolve().name
    config = folder / "config.json"
    if config.is_file():
        yield str(parse_json(config.read_text("utf-8")).get("_name_or_path", ""))


def _last_part(name: str) -> str:
    """Return a model's bare name: nomic-embed-text for `openai:library/nomic-embed-text:latest`."""
    return name.rstrip("/").removeprefix("int8:").removeprefix("openai:").rpartition("/")[2].partition(":")[0]
