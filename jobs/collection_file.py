"""The collection file: which sites and folders make a collection, and how it is indexed. YAML, validated.

Errors name file, key and value. Knows no database and no Ray.
"""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobs.cli import BadInput
from pipelines.indexing.chunking.url_rules import UrlRules
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.reading.folder import SPHINX_COPIES, FolderSettings
from pipelines.records import ChunkUnit, IndexSettings, VectorType

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Site(_Strict):
    """A site to crawl; every key but `start_urls` is optional. See CrawlSettings for what they mean."""

    start_urls: list[str] = Field(min_length=1)
    include: list[str] = []
    exclude: list[str] = []
    max_pages: int | None = Field(None, ge=1)
    max_depth: int | None = Field(None, ge=0)
    no_parent: bool = True
    sitemap: bool = True
    ignore_robots: bool = False
    allow_private: bool = False
    concurrency: int = Field(8, ge=1, le=64)
    delay_s: float = Field(0.0, ge=0)
    timeout_s: float = Field(20.0, gt=0)
    retries: int = Field(3, ge=0)
    max_page_bytes: int = Field(20 * 1024 * 1024, ge=1)
    user_agent: str | None = None

    def hosts(self, retry_failed_only: bool = False) -> list[CrawlSettings]:
        """One crawl for each host of the start URLs."""
        by_host: dict[str, list[str]] = {}
        for url in self.start_urls:
            by_host.setdefault(urlsplit(url).netloc.lower(), []).append(url)
        known = {field.name for field in fields(CrawlSettings)}
        common = {key: value for key, value in self.model_dump(exclude={"start_urls"}).items() if key in known}
        if common["user_agent"] is None:
            del common["user_agent"]
        for key in ("include", "exclude"):
            common[key] = tuple(common[key])
        return [
            CrawlSettings(start_urls=tuple(urls), retry_failed_only=retry_failed_only, **common)
            for urls in by_host.values()
        ]


class Folder(_Strict):
    """Files that stand for the pages under `base_url`."""

    path: str
    base_url: str
    include: list[str] = []
    exclude: list[str] = list(SPHINX_COPIES)

    def settings(self) -> FolderSettings:
        return FolderSettings(self.path, self.base_url, tuple(self.include), tuple(self.exclude))


class Indexing(_Strict):
    """How the collection is indexed; a change builds a new index from the stored pages."""

    model: str = "all-MiniLM-L6-v2"
    dimension: int = Field(0, ge=0)
    chunk_size: int = Field(0, ge=0)
    chunk_overlap: int = Field(0, ge=0)
    chunk_unit: ChunkUnit = "tokens"
    vector_type: VectorType = "auto"

    def settings(self) -> IndexSettings:
        return IndexSettings(**self.model_dump())


class Collection(_Strict):
    """A named body of documents."""

    name: Name
    sites: list[Site] = []
    folders: list[Folder] = []
    index: Indexing = Field(default_factory=lambda: Indexing.model_validate({}))
    tags: dict[str, str] = {}
    version: str | None = None
    max_delete_ratio: float = Field(0.2, ge=0, le=1)

    def rules(self) -> UrlRules:
        return UrlRules(self.tags, self.version)


def load_collection(path: Path) -> Collection:
    """Read and validate a collection file. Raises BadInput naming file, key and value."""
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise BadInput(f"collection file {path} can't be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise BadInput(f"collection file {path} is not YAML: {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"collection file {path} must hold keys and values (name, sites, …), not {type(data).__name__}")
    return collection_from({"name": path.stem, **data}, str(path))


def collection_from(data: dict[str, Any], where: str) -> Collection:
    """Validate a collection's settings; `where` names their origin in errors. Raises BadInput."""
    try:
        collection = Collection.model_validate(data)
        for site in collection.sites:
            site.hosts()
        for folder in collection.folders:
            folder.settings()
        collection.rules()
    except ValidationError as error:
        raise BadInput("\n".join(f"{where}: {_problem(problem)}" for problem in error.errors())) from error
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from error
    return collection


def _problem(problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"]) or "(file)"
    if problem["type"] == "missing":
        return f"{key} is missing"
    return f"{key} = {problem['input']!r}: {problem['msg']}"
