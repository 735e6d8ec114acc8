"""A folder, glob or bucket as a source of pages: its files, at the URLs that their site gives them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.indexing.crawling.scope import spellings
from pipelines.indexing.folders.files import limit_files, save_files
from pipelines.indexing.folders.folder import Folder, FolderSettings, Listing, NoSuchFolder
from pipelines.indexing.reading.formats import SOURCES, format_of_name
from pipelines.indexing.sources.published import is_file, listed_urls, read_listing
from pipelines.indexing.sources.source import PageSource, SourcePlan, SourceReading
from pipelines.store import Store
from pipelines.text.counts import counted
from pipelines.text.progress import Progress


@dataclass(frozen=True)
class FolderSource(PageSource):
    """The files of a folder; with `only`, the files that are published at these URLs."""

    folder: Folder
    only: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return self.folder.path

    @property
    def prefixes(self) -> Sequence[str]:
        return (self.folder.base_url,)

    @property
    def absence(self) -> str:
        return f"its file under {self.folder.path} is gone"

    def check(self, relative_paths: bool, tell: Progress) -> None:
        """Raise NoSuchFolder for a folder without a readable file, or a relative one unless `relative_paths`."""
        path = self.folder.path
        if not relative_paths and "://" not in path and not Path(path).is_absolute():
            raise NoSuchFolder(
                f"path {path!r} is relative: a Ray job runs in a copy of the working directory, perhaps on another "
                "machine. Give the absolute path of a folder that every node sees, or a bucket URL"
            )
        self.folder.recognised().files()
        if is_file(self.folder.sitemap):
            read_listing(self.folder.sitemap, self.folder.base_url)

    def plan(self, store: Store, collection: str) -> SourcePlan:
        settings = self.folder.recognised()
        return self.count([settings.url_of(path) for path in settings.files().paths], store, collection)

    def read(self, reading: SourceReading) -> Iterator[list[str]]:
        """Commit the pages of files that may have changed, and record that the others exist."""
        settings = self.folder.recognised()
        listing = settings.files()
        urls, who = listed_urls(self.folder, reading, ask=self.only is None)
        if urls:
            settings = settings.matched(listing.system, listing.paths, urls)
            listing = settings.files()
        if said := self._cited(settings, listing, who):
            reading.tell(said)
        if self.only is not None:
            listing = limit_files(settings, listing, self.only)
        pages, left_out = save_files(
            settings, listing, reading.store, reading.collection, reading.run, reading.read_all
        )
        reading.count_files(listing.skipped, listing.excluded + left_out)
        reading.tell(f"{counted(pages, 'file')} under {self.name}")
        yield from ()

    def _cited(self, settings: FolderSettings, listing: Listing, who: str) -> str:
        """Return how the files are cited and the source of their URLs, "" if nothing was assumed."""
        sources = settings.sources
        linked = sources is not None and not sources.generator
        if settings.published:
            found, listed = len(settings.published.urls), settings.published.listed
            others = "like the links between them" if linked else "by their own names"
            others = "by their generator's rules" if sources and not linked else others
            rest = f"; the others {others}" if found < len(listing.paths) else ""
            return (
                f"{who} lists {counted(listed, 'URL')}: {found:,} of "
                f"{counted(len(listing.paths), 'file is', 'files are')} cited at them{rest}"
            )
        if sources and not linked:
            return f"{sources.config}: {self.name} is cited as {sources.generator} publishes it"
        made = [path for path in listing.paths if format_of_name(path) in SOURCES]
        if not made or settings.url_style != "auto":
            return ""
        unknown = settings.unknown_generator()
        why = f"the URLs of {unknown} are not known" if unknown else "no generator is recognised"
        how = "like the links between them" if linked else "by their own names"
        example = next((url for url in map(settings.url_of, made) if not url.endswith("/")), settings.url_of(made[-1]))
        return (
            f"{why}, and no site lists its URLs: the files under {self.name} are cited {how}, such as {example}. "
            "`--sitemap FILE` or `--url-style` defines their URLs"
        )

    def limited_to(self, urls: Collection[str]) -> "FolderSource | None":
        only = frozenset(spellings(url for url in urls if self.covers(url)))
        return FolderSource(self.folder, only) if only else None
