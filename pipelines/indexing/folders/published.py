"""Finds the files of a folder among the URLs that a site lists.

A file is first looked for at its generator's URL, then by its front matter, its path, and its title. Paths are compared
regardless of common renames: lower case, slugs, dropped numbers and groups, other folders in front. Which folders
correspond is learned from files that match only one URL. This module knows no network and no database.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pipelines.indexing.reading.formats import format_of_name
from pipelines.indexing.reading.formats.slugs import slug
from pipelines.indexing.reading.front_matter import front_matter

Key = tuple[str, ...]  # the parts of a path, normalized for comparison
# A folder rule with fewer matching files may be a coincidence.
LEAST_VOTES = 2
_ORDER = re.compile(r"\A\d+\s*[-_.]+\s*(?=[^-_.\s\d])")
_GROUP = re.compile(r"\(.*\)")
_INDEXES = ("index", "_index", "readme")
_NAMED = ("url", "permalink", "path", "slug")  # front matter keys that may give a page's path, or its end
_HEADING = re.compile(r"^#\s+(.+)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class PublishedUrls:
    """The URLs of a folder's files that the site lists, by path, and how many URLs it lists in all."""

    urls: Mapping[str, str]
    listed: int


def key_of(path: str) -> Key:
    """Return the key for comparing file paths and URL paths: their parts without suffix, order, group and index."""
    parts = [part for part in unquote(path).split("/") if part and not _GROUP.fullmatch(part)]
    if parts and format_of_name(parts[-1]):
        parts[-1] = parts[-1].rpartition(".")[0]
    if parts and parts[-1].lower() in _INDEXES:
        parts.pop()
    return tuple(slug(_ORDER.sub("", part)).replace("_", "-") for part in parts)


def match_files(
    files: Mapping[str, str], inner: Mapping[str, str], base_url: str, urls: Iterable[str], body: Callable[[str], bytes]
) -> dict[str, str]:
    """Return the URL of each file that is among `urls`, the ones that a site lists.

    `files` are paths with their assumed URLs, `inner` their paths below the folder; `body` reads a file.
    """
    below = dict.fromkeys(url for url in urls if url.startswith(base_url))
    found = {path: url for path, url in files.items() if url in below}
    left = dict[Key, str]()
    for url in sorted(below.keys() - found.values()):
        left[key_of(urlsplit(url).path[len(urlsplit(base_url).path) :])] = url

    def take(keys: Mapping[str, Sequence[Key]]) -> None:
        for path, candidates in keys.items():
            key = next((key for key in candidates if key in left), None)
            if path not in found and key is not None:
                found[path] = left.pop(key)

    def todo() -> list[str]:
        return [path for path in files if path not in found]

    take({path: [key_of(url.removeprefix(base_url))] for path, url in files.items()})
    fields = {path: front_matter(body(path)) for path in todo()}
    take({path: _named_keys(inner[path], fields[path]) for path in todo()})
    for keys_of in (_path_keys, _title_keys):
        keys = {path: keys_of(inner[path], fields[path], body) for path in todo()}
        take(_by_rules(keys, left))
    return found


def _named_keys(inner: str, fields: Mapping[str, object]) -> list[Key]:
    """Return the keys in a page's front matter: whole paths, and names that replace the file's name."""
    named = [str(fields[name]) for name in _NAMED if isinstance(fields.get(name), str | int)]
    return [key for name in named for key in (key_of(name), (*key_of(inner)[:-1], *key_of(name)))]


def _path_keys(inner: str, fields: Mapping[str, object], body: Callable[[str], bytes]) -> list[Key]:
    return [key_of(inner)]


def _title_keys(inner: str, fields: Mapping[str, object], body: Callable[[str], bytes]) -> list[Key]:
    heading = _HEADING.search(body(inner)[:20_000].decode("utf-8", "replace"))
    titles = filter(None, [fields.get("title"), heading and heading[1]])
    return [(*key_of(inner)[:-1], slug(str(title))) for title in titles]


def _by_rules(keys: Mapping[str, Sequence[Key]], urls: Mapping[Key, str]) -> dict[str, list[Key]]:
    """Return for each file the keys of `urls` that may belong to it, likeliest first.

    A rule maps a folder of files to a folder of the site. It is derived from files whose path ends like a URL.
    """
    by_end: defaultdict[str, list[Key]] = defaultdict(list)
    for key in urls:
        by_end[key[-1] if key else ""].append(key)
    ends = Counter(key[-1] for candidates in keys.values() for key in candidates if key)
    votes: Counter[tuple[Key, Key]] = Counter()
    alone: dict[str, Key] = {}
    for path, candidates in keys.items():
        for key in candidates:
            same = {other: _common(key, other) for other in by_end[key[-1]]} if key else {}
            most = max(same.values(), default=0)
            best = [other for other, length in same.items() if length == most]
            votes.update({(key[: len(key) - most], other[: len(other) - most]) for other in best})
            if len(same) == 1 and ends[key[-1]] == 1:
                alone[path] = best[0]
    rules = [rule for rule, count in votes.most_common() if count >= LEAST_VOTES]
    return {
        path: [
            *((*to, *key[len(of) :]) for key in candidates for of, to in rules if key[: len(of)] == of),
            *([alone[path]] if path in alone else []),
        ]
        for path, candidates in keys.items()
    }


def _common(one: Key, other: Key) -> int:
    """Return how many parts at the ends of two keys are equal."""
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return length
