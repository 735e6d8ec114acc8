"""Reads a sweep file: shared settings, grids and single runs to compare.

The file is YAML; `base` has the shared settings. An invalid file is rejected before anything is measured. Knows no
database and no index.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pipelines.answering.settings import AnswerSettings, all_agents, flatten, full_name, variable_of
from pipelines.answering.synthesis.prompts import Prompts, TemplateError
from pipelines.evaluation.judging.dimensions import dimension_of
from pipelines.indexing.collection import IndexChoices
from pipelines.records import IndexSettings, digest
from pipelines.text.counts import counted
from pipelines.text.mistakes import describe_mistakes, suggest
from pipelines.text.parsing import NotParsed, UniqueKeyLoader, parse_yaml

# The numbers of chunks in the study: 1 to 13, and 18 for its 13 plus 5 from lexical search.
KS = (1, 3, 5, 9, 13, 18)
# Machine settings, which change no answer, and API keys, which a file and its report must not show.
OF_THE_MACHINE = (
    "collection", "home", "retrieval.patience_s", "embedding.device", "embedding.threads", "reranker.device",
)  # fmt: skip
SECRETS = ("embedding.key", "llm.key", "reranker.key")
# Values that an index gets when it is built, and settings of the collection's pages.
OF_THE_INDEX_ITSELF = ("identity", "sectioning", "html")
INDEX = tuple(f.name for f in fields(IndexSettings) if f.name not in OF_THE_INDEX_ITSELF)
ANSWERING = tuple(
    name for name in flatten(AnswerSettings().model_dump(), AnswerSettings) if name not in (*OF_THE_MACHINE, *SECRETS)
)
MOST_CELLS = 1_000


class BadSweep(ValueError):
    """A sweep file can't be used; the message names the file, the key and the remedy."""


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _dimension(name: str) -> str:
    return dimension_of(name).name


Text = Annotated[str, Field(pattern=r"\S")]
Texts = Annotated[list[Text], Field(min_length=1), BeforeValidator(_as_list)]
Settings = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]
Grid = Annotated[dict[str, Any], Field(min_length=1)]


class SweepFile(BaseModel):
    """The keys of a sweep file. Settings and their values are validated with the cells."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Text
    collection: Text
    dataset: Texts
    ks: Annotated[list[Annotated[int, Field(ge=1, le=100)]], Field(min_length=1), BeforeValidator(_as_list)] = list(KS)
    answers: bool = False
    judge: str = ""
    dimensions: Annotated[list[Annotated[str, AfterValidator(_dimension)]], Field(min_length=1)] = ["quality"]
    base: Settings = {}
    grid: Annotated[list[Grid], BeforeValidator(_as_list)] = []
    runs: list[Settings] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.judge and not self.answers:
            raise ValueError(f"judge is {self.judge!r}: it needs answers: true")
        if not self.grid and not self.runs:
            raise ValueError("there is nothing to compare: give a grid (settings with lists of values), runs, or both")
        return self


@dataclass(frozen=True, slots=True)
class Cell:
    """One configuration of a sweep: `settings` are all its values in the file, `varied` the ones that set it apart.

    `labels` are the values of `varied` in few words.
    """

    name: str
    settings: Mapping[str, Any]
    varied: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def index(self) -> dict[str, Any]:
        """Its index settings; empty means the live index."""
        return {name: value for name, value in self.settings.items() if name in INDEX}

    def configuration(self, environment: Mapping[str, Any]) -> AnswerSettings:
        """Return the environment's settings, overridden by the cell's. Raises ValidationError."""
        own = {name: value for name, value in self.settings.items() if name in ANSWERING}
        return AnswerSettings.model_validate({**environment, **own})


@dataclass(frozen=True, slots=True)
class Sweep:
    """A comparison: `cells` over the questions of `datasets`, at the depths `ks`, with answers if `answers`.

    `judge` is the agent whose model judges the answers in `dimensions` ("": none).
    """

    name: str
    collection: str
    datasets: tuple[Path, ...]
    ks: tuple[int, ...]
    answers: bool
    cells: tuple[Cell, ...]
    judge: str = ""
    dimensions: tuple[str, ...] = ("quality",)

    @property
    def names(self) -> list[str]:
        """The names of the cells."""
        return [cell.name for cell in self.cells]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The settings that differ between cells, in the order of the file."""
        return tuple(dict.fromkeys(name for cell in self.cells for name in cell.varied))


def read_sweep(path: Path, environment: Mapping[str, Any] | None = None) -> Sweep:
    """Return the sweep in a file. `environment` has the settings that cells don't set. Raises BadSweep.

    Its `dataset`, one file or a list, is relative to the file's folder.
    """
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"), UniqueKeyLoader)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadSweep(f"sweep file {path} can't be read: {why}") from error
    except NotParsed as error:
        raise BadSweep(f"sweep file {path} is not valid YAML: {error}") from error
    if not isinstance(data, dict):
        keys = ", ".join(SweepFile.model_fields)
        raise BadSweep(f"sweep file {path} must contain keys and values ({keys}), not {type(data).__name__}")
    try:
        return sweep_from({"name": path.stem, **data}, path.parent, environment or {})
    except BadSweep as error:
        raise BadSweep("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from error


def sweep_from(data: Mapping[str, Any], folder: Path, environment: Mapping[str, Any]) -> Sweep:
    """Return the sweep that `data` describes; its data sets are relative to `folder`. Raises BadSweep."""
    _check_keys(data, list(SweepFile.model_fields), "")
    try:
        file = SweepFile.model_validate(data)
    except ValidationError as error:
        raise BadSweep(describe_mistakes(error, SweepFile, between="\n")) from error
    cells = tuple(_name_cells(_drop_repeated(_cells(file))))
    _check_count(len(cells))
    _check_cells(cells, environment, file.judge)
    datasets = tuple(folder / path for path in file.dataset)
    ks, dimensions = tuple(sorted(set(file.ks))), tuple(file.dimensions)
    return Sweep(file.name, file.collection, datasets, ks, file.answers, cells, file.judge, dimensions)


# --------------------------------------------------------------------------------------------- keys and values


def _check_keys(data: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    """Reject keys that are not among `keys`."""
    for key in data:
        if key in SECRETS:
            raise BadSweep(f"{where}{key}: keys do not belong in a file: set {variable_of(key)}")
        if key not in keys:
            raise BadSweep(f"{where}{key} is unknown: {suggest(str(key), keys)}")


def _check_count(count: int) -> None:
    if count > MOST_CELLS:
        raise BadSweep(
            f"{counted(count, 'configuration is', 'configurations are')} more than {MOST_CELLS:,}: make the grid "
            "smaller"
        )


def _settings(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return settings by name. Raises BadSweep for unknown ones."""
    value = {name if name in INDEX else full_name(str(name), AnswerSettings): one for name, one in value.items()}
    _check_keys(value, (*INDEX, *ANSWERING), f"{where}.")
    for agent in value.get("agents") or []:
        if isinstance(agent, dict) and agent.get("api_key"):
            raise BadSweep(f"{where}.agents: keys do not belong in a file: describe the agents in RAYDEX_AGENTS")
    return value


def _cells(file: SweepFile) -> Iterator[Cell]:
    """Yield every configuration of the file, grids first."""
    base = _settings(file.base, "base")
    for grid in file.grid:
        yield from _product(base, grid)
    for number, run in enumerate(file.runs, 1):
        yield _run(base, run, f"runs[{number}]")


def _product(base: Mapping[str, Any], grid: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield every combination of a grid's values: a list for each setting, or a mapping of labels to values."""
    axes = []
    for name, values in grid.items():
        (setting,) = _settings({name: None}, "grid")
        if not isinstance(values, (list, dict)) or not values:
            raise BadSweep(f"grid.{name} is {values!r}: it must be a list of values, not an empty one")
        labelled = values.items() if isinstance(values, dict) else [(label(value), value) for value in values]
        axes.append([(setting, str(text), value) for text, value in labelled])
    _check_count(math.prod(map(len, axes)))
    for combination in itertools.product(*axes):
        varied = {name: value for name, _, value in combination}
        labels = {name: text for name, text, _ in combination}
        settings = _settings({**base, **varied}, "grid")
        yield Cell("", settings, varied, labels)


def _run(base: Mapping[str, Any], run: Mapping[str, Any], where: str) -> Cell:
    name = run.get("name", "")
    if not isinstance(name, str):
        raise BadSweep(f"{where}.name is {name!r}: it must be a text")
    varied = _settings({key: value for key, value in run.items() if key != "name"}, where)
    return Cell(name, {**base, **varied}, varied, {key: label(value) for key, value in varied.items()})


def label(value: Any) -> str:
    """Return a value in few words."""
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, float):
        return f"{value:g}"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:28]}… {digest(text)[:6]}"


def _drop_repeated(cells: Iterator[Cell]) -> Iterator[Cell]:
    """Yield the cells without duplicate settings; a run's name is kept."""
    kept: dict[str, Cell] = {}
    for cell in cells:
        key = json.dumps(cell.settings, sort_keys=True, default=str)
        earlier = kept.get(key)
        if earlier is None or (cell.name and not earlier.name):
            base = earlier or cell
            kept[key] = replace(cell, varied=cell.varied or base.varied, labels=cell.labels or base.labels)
        elif cell.name:
            raise BadSweep(f"runs {earlier.name!r} and {cell.name!r} have the same settings")
    yield from kept.values()


def _name_cells(cells: Iterator[Cell]) -> Iterator[Cell]:
    """Yield every cell with a unique name. Raises BadSweep for two equal names."""
    taken: set[str] = set()
    for cell in cells:
        name = cell.name or ", ".join(f"{key}={text}" for key, text in cell.labels.items()) or "base"
        if name in taken:
            raise BadSweep(f"two runs are called {name!r}: give each its own name")
        taken.add(name)
        yield replace(cell, name=name)


def _check_cells(cells: Sequence[Cell], environment: Mapping[str, Any], judge: str) -> None:
    """Reject values that no configuration can have, and a judge that a configuration lacks."""
    for cell in cells:
        model: type[BaseModel] = IndexChoices
        try:
            IndexChoices.model_validate(cell.index)
            model = AnswerSettings
            configuration = cell.configuration(environment)
            Prompts(configuration.prompts.templates, configuration.prompts.variables)
        except ValidationError as error:
            raise BadSweep(f"{cell.name}: {describe_mistakes(error, model)}") from error
        except TemplateError as error:
            raise BadSweep(f"{cell.name}: prompts: {error}") from error
        names = [agent.name for agent in all_agents(configuration)]
        if judge and judge not in names:
            there = ", ".join(names) or "none"
            raise BadSweep(f"{cell.name}: there is no agent {judge!r} to judge; there are: {there}")
