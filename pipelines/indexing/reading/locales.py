"""Finds the locales of a site with translations next to its pages: `page.fr.md` next to `page.md`.

It reads the configuration of Hugo and of MkDocs' plugin `i18n`. Independent of the file system.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from pipelines.text.parsing import NotParsed, parse_toml, parse_yaml

Renames = tuple[tuple[str, str], ...]


class _Loader(yaml.SafeLoader):
    """Loads values with unknown tags, such as the name of a function, as None."""


_Loader.add_multi_constructor("", lambda loader, suffix, node: None)


def locale_renames(configuration: str) -> Renames:
    """Return regular expressions for the paths of translations with their replacements in URLs, if there are any.

    A translation is published below its locale, a page in the default language at the root.
    """
    keys = {str(name).lower(): value for name, value in _keys(configuration).items()}
    return _of_hugo(keys) or _of_mkdocs(keys)


def locale_folders(configuration: str) -> dict[str, str]:
    """Return the content folder of each language in Hugo's configuration, by the folder's URL.

    The default language is published at the root, unless the configuration says otherwise.
    """
    keys = {str(name).lower(): value for name, value in _keys(configuration).items()}
    languages = keys.get("languages")
    if not isinstance(languages, dict):
        return {}
    default = str(keys.get("defaultcontentlanguage", "en")).lower()
    folders: dict[str, str] = {}
    for locale, own in languages.items():
        named = {str(name).lower(): value for name, value in own.items()} if isinstance(own, dict) else {}
        if isinstance(folder := named.get("contentdir"), str) and folder.strip("/"):
            folders["" if str(locale).lower() == default else f"{locale}/"] = folder.strip("/")
    return folders


def _of_hugo(keys: Mapping[str, Any]) -> Renames:
    languages = keys.get("languages")
    if not isinstance(languages, dict):
        return ()
    default = str(keys.get("defaultcontentlanguage", "en"))
    renames = _by_suffix(default, map(str, languages))
    if keys.get("defaultcontentlanguageinsubdir") is not True:
        return renames
    return (*renames, (rf"\A(?!(?:{_any(map(str, languages))})/)", f"{default}/"))


def _of_mkdocs(keys: Mapping[str, Any]) -> Renames:
    for plugin in _entries(keys.get("plugins")):
        if isinstance(plugin, dict) and isinstance(own := plugin.get("i18n"), dict):
            listed = own.get("languages")
            languages = [one for one in _entries(listed) if isinstance(one, dict) and "locale" in one]
            first = next((str(one["locale"]) for one in languages if one.get("default") is True), "")
            default = str(own.get("default_language") or first)
            if own.get("docs_structure") == "folder":
                return ((rf"\A{re.escape(default)}/", ""),) if default else ()
            named = listed if isinstance(listed, dict) else [one["locale"] for one in languages]
            return _by_suffix(default, map(str, named))
    return ()


def _by_suffix(default: str, locales: Iterable[str]) -> Renames:
    others = _any(locale for locale in locales if locale.lower() != default.lower())
    of_default = ((rf"\.{re.escape(default)}\Z", ""),) if default else ()
    return (*of_default, *([(rf"\A(.+)\.({others})\Z", r"\2/\1")] if others else []))


def _any(locales: Iterable[str]) -> str:
    return "|".join(map(re.escape, locales))


def _entries(value: object) -> Iterator[object]:
    """Yield the entries of a list, or the entries of a mapping as one-key mappings."""
    if isinstance(value, dict):
        yield from ({name: each} for name, each in value.items())
    elif isinstance(value, list):
        yield from value


def _keys(text: str) -> Mapping[str, Any]:
    """Return the keys of a TOML, YAML or JSON string; none for other text."""
    for parse in (parse_toml, lambda source: parse_yaml(source, _Loader)):
        try:
            keys = parse(text)
        except NotParsed:
            continue
        return keys if isinstance(keys, dict) else {}
    return {}
