"""Defines a collection: its sites and folders, and how it is indexed.

It comes from a YAML file, from flags, or from Python: `Collection(name="docs", folders=[Folder(…)])`. Every key is
validated. Defaults come from the settings objects that the values end up in. This module knows no database and no Ray.
"""

import glob
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from pipelines.indexing.chunking.url_rules import UrlPattern, UrlRules
from pipelines.indexing.crawling.crawl import Site
from pipelines.indexing.folders.folder import Folder
from pipelines.indexing.reading.generator import check_selector
from pipelines.indexing.sources.folder import FolderSource
from pipelines.indexing.sources.site import SiteSource
from pipelines.indexing.sources.source import ConfiguredSource, PageSource, configured_source
from pipelines.records import ChunkUnit, IndexSettings, VectorType
from pipelines.records.night_choices import NightChoices
from pipelines.text.counts import counted
from pipelines.text.mistakes import describe_mistakes
from pipelines.text.parsing import NotParsed, UniqueKeyLoader, parse_yaml

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
Words = Annotated[str, Field(pattern=r"\w", max_length=200)]
Weight = Annotated[float, Field(gt=0, le=100)]
Selector = Annotated[str, AfterValidator(check_selector)]

# Instances that define the defaults of a crawl and of an index, in one place.
AUTO = "auto"
CRAWL, INDEX = Site(start_urls=("http://localhost/",)), IndexSettings()
# Share of an index's pages that may vanish at once; if more do, a broken site is likelier than a cleanup.
MAX_DELETE_RATIO = 0.2
OWN = "(default: from its files or its model family)"
COLLECTION_FILES = (".yaml", ".yml")
# Image types that readers' browsers show. A logo's length in characters is limited because it is sent with the title.
LOGOS = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}
MAX_LOGO = 100_000
# A host with a dot or a port, perhaps with a path.
_WITHOUT_SCHEME = re.compile(r"(?:[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w-]+:\d+)(?:/.*)?")

NO_BASE_URL = (
    "folder {path!r} needs --base-url URL: its files are cited as pages under that URL "
    "(http://localhost/ if they are published nowhere)"
)


class InvalidCollection(ValueError):
    """A collection file or its flags can't be used; the message names the file, the key and the value."""


class InvalidLogo(ValueError):
    """A logo is not an image, or is too large."""


def check_logo(logo: str) -> str:
    """Return `logo`, a `data:` URL of an image ("" for none). Raises InvalidLogo."""
    kinds = ", ".join(LOGOS)
    if logo and not re.fullmatch(rf"data:(?:{'|'.join(map(re.escape, LOGOS.values()))});base64,[\w+/]+=*", logo):
        raise InvalidLogo(
            f"{logo[:100]!r} is not a picture: give a file ({kinds}) next to the collection file, not a URL"
        )
    if len(logo) > MAX_LOGO:
        raise InvalidLogo(
            f"the picture has {counted(len(logo), 'character')}, at most {MAX_LOGO:,} are shown; make it smaller"
        )
    return logo


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HtmlSelectors(_Strict):
    """CSS selectors for the parts of a site's pages; parts without a selector are found as on any other site.

    `content` selects the text to read, `title` a page's title, `noise` parts to leave out, and `boxes` asides to the
    text.
    """

    content: Selector | None = None
    title: Selector | None = None
    noise: list[Selector] = []
    boxes: list[Selector] = []

    @property
    def chosen(self) -> dict[str, Any]:
        """The selectors that are set, as the settings of an index store them."""
        return self.model_dump(exclude_defaults=True)


class PinnedQuestion(_Strict):
    """Makes the section at `url` (`page#anchor`) the first hit for `question`, and for questions that mean the same."""

    question: Words
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")]


class IndexChoices(_Strict):
    """The settings of a collection's index; a change builds a new index from the stored pages.

    `model` "auto" is the model of the live index. For a new index, it is the one that suits the machine (see
    index_settings). The prefixes are put before the text that the model reads. By default, they come from the model's
    files or are the ones its family needs.
    """

    model: str = Field(AUTO, description="embedding model")
    dimension: int = Field(default=INDEX.dimension, ge=0)
    chunk_size: int = Field(INDEX.chunk_size, ge=0, description="size of a chunk; 0: the model's limit")
    chunk_overlap: int = Field(INDEX.chunk_overlap, ge=0, description="overlap with the previous chunk")
    chunk_unit: ChunkUnit = Field(INDEX.chunk_unit, description="unit of size and overlap")
    vector_type: VectorType = Field(INDEX.vector_type, description="column type of vectors")
    query_prefix: str | None = Field(
        INDEX.query_prefix, description=f"text that the model gets before a question {OWN}"
    )
    chunk_prefix: str | None = Field(INDEX.chunk_prefix, description=f"text that the model gets before a chunk {OWN}")

    def settings(self) -> IndexSettings:
        """Return the settings of an index, without the model's identity."""
        return IndexSettings(**self.model_dump())


class Collection(_Strict):
    """A named body of documents that is indexed and queried together.

    Readers see its `title`, by default its site's title. Its pages come from `sites`, `folders` and other `sources`.
    """

    name: Name
    title: str = ""
    sites: list[Site] = []
    folders: list[Folder] = []
    sources: list[Annotated[SerializeAsAny[ConfiguredSource], BeforeValidator(configured_source)]] = []
    index: IndexChoices = IndexChoices()
    html: HtmlSelectors = HtmlSelectors()
    tags: dict[str, str] = {}
    version: str | None = None
    boosts: dict[UrlPattern, Weight] = {}
    synonyms: list[Annotated[list[Words], Field(min_length=2)]] = []
    pinned: list[PinnedQuestion] = []
    examples: list[Words] = Field(default=[], max_length=12)
    logo: Annotated[str, AfterValidator(check_logo)] = ""
    max_delete_ratio: float = Field(default=MAX_DELETE_RATIO, ge=0, le=1)
    night: NightChoices = NightChoices()

    @model_validator(mode="after")
    def _check(self) -> "Collection":
        self.rules()
        return self

    def rules(self) -> UrlRules:
        """Return the rules that tell tags and versions from URLs."""
        return UrlRules(self.tags, self.version)

    def as_stored(self) -> dict[str, Any]:
        """Return the values that the database keeps for a later run; folders have absolute paths."""
        values = self.model_dump(mode="json")
        for folder in values["folders"]:
            for name in ("path", "sitemap"):
                if folder[name] and "://" not in folder[name]:
                    folder[name] = str(Path(folder[name]).absolute())
        return values

    def page_sources(self, retry_failed: bool = False) -> list[PageSource]:
        """Return the sources of its pages; with `retry_failed`, sites are only asked for pages that failed."""
        hosts = [host for each in self.sites for host in each.hosts(retry_failed)]
        return [*map(SiteSource, hosts), *map(FolderSource, self.folders), *self.sources]


# ---------------------------------------------------------------------------------------------- from a file, from flags


def is_collection_file(given: str) -> bool:
    """Return whether `given` is a collection file, existing or not, rather than a name."""
    return Path(given).suffix in COLLECTION_FILES or Path(given).is_file()


def load_collection(path: Path) -> Collection:
    """Read a collection file, whose name is the default of `name`. Raises InvalidCollection."""
    return collection_from(_read_yaml(path), str(path))


def compose_collection(
    target: str | None = None,
    start_urls: Sequence[str] = (),
    path: str | None = None,
    base_url: str | None = None,
    *,
    crawl: Mapping[str, Any] | None = None,
    index: Mapping[str, Any] | None = None,
    stored: Mapping[str, Any] | None = None,
    sitemap: str | None = None,
    **top: Any,
) -> Collection:
    """Return the collection of a file, of start URLs or of the files under `path`, with some keys replaced.

    `target` is any of the three: a URL, a folder (glob, bucket, document), or else a collection file. Without any of
    them, the `stored` collection of the last run is used. `crawl` replaces keys of every site and folder that has them,
    `sitemap` the sitemap of every folder, `index` keys of the index, and `top` keys of the collection, unless None. The
    default of `name` is the file's name or the host. Raises InvalidCollection.
    """
    origin = target or ("flags" if stored is None else "stored settings")
    file, start_urls, path = _place(target, start_urls, path)
    if path and start_urls:
        raise InvalidCollection("a folder and a start URL can't be combined; a collection file can have both")
    if bool(path) != bool(base_url):
        raise InvalidCollection(NO_BASE_URL.format(path=path) if path else
                                f"--base-url {base_url} needs a folder: give --path DIR")  # fmt: skip
    host = urlsplit(start_urls[0] if start_urls else base_url or "").hostname or "docs"
    data: dict[str, Any] = dict(stored or {"name": host.lower().replace(":", "-")})
    if file:
        data = _read_yaml(file)
    if start_urls:
        data |= {"sites": [{"start_urls": list(start_urls)}], "folders": [], "sources": []}
    if path:
        data |= {"sites": [], "folders": [{"path": path, "base_url": base_url}], "sources": []}
    data |= {key: value for key, value in top.items() if value is not None}
    collection = collection_from(data, origin)
    if not collection.page_sources():
        why = "nothing to index" if stored is None else f"collection {collection.name!r} has no stored sources"
        raise InvalidCollection(f"{why}: give a URL, a folder with --base-url URL, or a collection file")
    return _replace(collection, crawl or {}, index or {}, sitemap, origin)


def _place(
    target: str | None, start_urls: Sequence[str], path: str | None
) -> tuple[Path | None, Sequence[str], str | None]:
    """Return collection file, start URLs and folder, with `target` as one of them. Raises InvalidCollection."""
    if not target:
        return None, start_urls, path
    if target.lower().startswith(("http://", "https://")):
        return None, [target, *start_urls], path
    if not _holds_documents(target):
        _check_exists(target)
        return Path(target), start_urls, path
    if path:
        raise InvalidCollection(f"{target!r} and --path {path!r} are both folders: a collection file can have both")
    return None, start_urls, target


def _check_exists(target: str) -> None:
    """Raise InvalidCollection if `target` does not exist: a URL without its scheme, or a mistyped path."""
    if Path(target).exists() or Path(target).suffix in COLLECTION_FILES:
        return
    is_url = _WITHOUT_SCHEME.fullmatch(target)
    hint = (
        f"the URL of a site begins with https://: `raydex index https://{target}`" if is_url else "check its spelling"
    )
    raise InvalidCollection(f"there is no file or folder {target!r}; {hint}")


def _holds_documents(target: str) -> bool:
    """Return whether `target` is a folder, bucket or document rather than a collection file."""
    if "://" in target or Path(target).is_dir():
        return True
    return glob.has_magic(target) or (Path(target).is_file() and Path(target).suffix not in COLLECTION_FILES)


def collection_from(data: Mapping[str, Any], origin: str) -> Collection:
    """Validate a collection's keys; errors name `origin`, key and value. Raises InvalidCollection."""
    try:
        return Collection.model_validate(data)
    except ValidationError as error:
        lines = describe_mistakes(error, Collection, between="\n").splitlines()
        raise InvalidCollection("\n".join(f"{origin}: {line}" for line in lines)) from error


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        data = parse_yaml(path.read_text("utf-8"), UniqueKeyLoader)
    except OSError as error:
        raise InvalidCollection(f"collection file {path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidCollection(f"collection file {path} is not UTF-8 ({error}): save it as UTF-8") from error
    except NotParsed as error:
        raise InvalidCollection(f"collection file {path} is not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise InvalidCollection(
            f"collection file {path} must contain keys and values (name, sites, …), not {type(data).__name__}"
        )
    if isinstance(logo := data.get("logo"), str) and logo and not logo.startswith("data:"):
        data["logo"] = _embedded(path.parent / logo) or logo
    return {"name": path.stem, **data}


def _embedded(picture: Path) -> str:
    """Return an image file as a `data:` URL, "" if there is no image at that path."""
    kind = LOGOS.get(picture.suffix.lower())
    return f"data:{kind};base64,{b64encode(picture.read_bytes()).decode()}" if kind and picture.is_file() else ""


def _replace(
    collection: Collection, crawl: Mapping[str, Any], index: Mapping[str, Any], sitemap: str | None, origin: str
) -> Collection:
    data = collection.model_dump()
    if "url_style" in crawl and not collection.folders:
        raise InvalidCollection(f"--url-style {crawl['url_style']} is for the files of a folder, and there is none")
    if sitemap is not None and not collection.folders:
        raise InvalidCollection(f"--sitemap {sitemap} is for the files of a folder, and there is none")
    for_folders = {key: crawl[key] for key in ("include", "exclude", "url_style", "allow_private") if key in crawl}
    for_folders |= {} if sitemap is None else {"sitemap": sitemap}
    for_sites = {key: value for key, value in crawl.items() if key != "url_style"}
    data["sites"] = [site | for_sites for site in data["sites"]]
    data["folders"] = [folder | for_folders for folder in data["folders"]]
    data["index"] |= index
    return collection_from(data, origin)
