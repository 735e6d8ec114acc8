"""Rejected values are explained in plain words: readers never see a pydantic message."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

import jobs
import pipelines
import serve
from pipelines.indexing.collection import Collection, InvalidCollection, collection_from
from pipelines.records import IndexSettings
from pipelines.text.mistakes import OURS, describe_mistakes, mistakes_of, suggest
from serve.settings import Settings

CONTEXT = {
    "gt": 1, "ge": 1, "lt": 1, "le": 1, "multiple_of": 2, "min_length": 1, "max_length": 2, "field_type": "List",
    "actual_length": 3, "pattern": "x", "expected": "'a' or 'b'", "error": "raw words", "field_names": "a", "name": "n",
    "class_name": "C", "class": "C", "method_name": "m", "function_name": "f", "attribute": "a", "expected_tags": "'a'",
    "tag": "b", "discriminator": "'kind'", "expected_schemes": "'http'", "encoding": "utf-8", "encoding_error": "bad",
    "tz_expected": 0, "tz_actual": 1, "max_digits": 3, "decimal_places": 2, "whole_digits": 2,
}  # fmt: skip
RAW = ("Input should", "should have", "should be", "should match", "Extra inputs", "Field required", "a valid ",
       "unable to", "Assertion", "JSON input", "validation error", "Input is", "Value error")  # fmt: skip
# Bad values of every shape; each field of each model gets all of them.
BAD = (
    None,
    True,
    -1,
    10**30,
    1.5,
    float("nan"),
    "",
    "\0",
    "x" * 300_000,
    b"\xff",
    [],
    [[]],
    [None],
    {},
    {"a": {}},
    object(),
)


def known_error(kind: Any) -> PydanticKnownError:
    for changed in ({}, {"error": ValueError("raw words")}, {"expected_version": 4}):
        try:
            return PydanticKnownError(kind, {**CONTEXT, **changed})
        except (TypeError, ValueError):
            continue
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", [one for one in get_args(ErrorType) if one not in OURS])
def test_every_kind_of_mistake_has_its_own_message(kind: Any) -> None:
    error = known_error(kind)
    problem = {"type": kind, "loc": ("a", "b"), "msg": error.message(), "input": 3, "ctx": error.context or {}}
    (said,) = (one.describe() for one in mistakes_of([problem]))
    assert said.startswith("a.b ") and error.message() not in said and not any(raw in said for raw in RAW), said
    assert "can't be used" not in said and "{" not in said, "the kind stands in mistakes.yaml"


def models() -> Iterator[type[BaseModel]]:
    for part in (pipelines, serve, jobs):
        for module in pkgutil.walk_packages(part.__path__, f"{part.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    stack = [BaseModel]
    while stack:
        for one in stack.pop().__subclasses__():
            stack.append(one)
            if one.__module__.startswith(("pipelines.", "serve.", "jobs.")) and one.__module__ != __name__:
                yield one


@pytest.mark.exhaustive  # imports every module, including torch
def test_every_bad_value_of_any_model_gets_a_plain_message() -> None:
    seen, lines = set(), set()
    for model in set(models()):
        for name in (*model.model_fields, "no_such_key"):
            for value in BAD:
                try:
                    model.model_validate({name: value})
                except ValidationError as error:
                    seen |= {one["type"] for one in error.errors(include_url=False)}
                    lines |= {(model.__name__, describe_mistakes(error, model))}
                except Exception:
                    continue
    wrong = [line for line in lines if any(raw in line[1] for raw in RAW)]
    assert not wrong, sorted(wrong)[:5]
    assert len(seen) > 12 and len(lines) > 200, "the models were found"


def said_of(values: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidCollection) as caught:
        collection_from({"name": "docs", **values}, "docs.yaml")
    return str(caught.value).splitlines()


SITE = {"start_urls": ["https://docs.example.com/"]}


@pytest.mark.parametrize(("values", "said"), [
    ({"sites": [{**SITE, "exlude": ["x"]}]}, "sites.0.exlude is unknown: did you mean exclude?"),
    ({"start_urls": ["https://x/"]}, "start_urls is unknown: it belongs under sites"),
    ({"start-url": ["https://x/"]}, "start-url is unknown: did you mean start_urls, under sites?"),
    ({"exclude": ["x"]}, "exclude is unknown: it belongs under sites or under folders"),
    ({"site": [SITE]}, "site is unknown: did you mean sites?"),
    ({"sites": [{**SITE, "tags": {}}]}, "sites.0.tags is unknown: it belongs at the top level"),
    ({"night": {"dumps": {}}}, "night.dumps is unknown: did you mean dump?"),
    ({"chunk_sise": 3}, "chunk_sise is unknown: did you mean chunk_size, under index?"),
    ({"sites": [{**SITE, "concurrency": 0}]}, "sites.0.concurrency is 0: it must be at least 1"),
    ({"sites": 3}, "sites is 3: it must be a list"),
    ({"sites": [{}]}, "sites.0.start_urls is missing"),
    ({"folders": [{"path": "x", "base_url": "http://x/", "url_style": "directry"}]},
     ("folders.0.url_style is 'directry': it must be 'auto', 'keep', 'html', 'directory' or 'bare'; "
      "did you mean directory?")),
    ({"boosts": {"a": 0}}, "boosts.a is 0: it must be more than 0"),
])  # fmt: skip
def test_collection_file_error_suggests_the_intended_key(values: dict[str, Any], said: str) -> None:
    assert said_of(values) == [f"docs.yaml: {said}"]


@pytest.mark.parametrize(("values", "said"), [
    ({"retreival": {"k": 3}}, "retreival is unknown: did you mean retrieval?"),
    ({"leg_depth": 3}, "leg_depth is unknown: it belongs under retrieval"),
    ({"agents": [{"name": "a", "model": "m", "api_kye": "secret"}]},
     "agents.0.api_kye is unknown: did you mean api_key?"),
    ({"agents": [{"name": "a", "model": "m", "api_key": 70707}]}, "agents.0.api_key: it must be text"),
    ({"agents": "[{'api_key': 'secret'}]"}, "agents: it must be a list"),
    ({"embedding": {"key": 70707}}, "embedding.key: it must be text"),
    ({"database_url": 70707}, "database_url: it must be text"),
])  # fmt: skip
def test_settings_are_described_without_secrets(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(**values)
    assert describe_mistakes(caught.value, Settings) == said


def test_value_with_several_allowed_types_is_one_mistake() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, int | list[str]]).validate_python({"a": {}})
    assert (
        describe_mistakes(caught.value, dict[str, int | list[str]])
        == "a is a table: it must be a whole number or a list"
    )


def test_dataclass_is_validated_like_a_model() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(IndexSettings).validate_python({"chunk_size": "many"})
    assert describe_mistakes(caught.value, IndexSettings) == "chunk_size is 'many': it must be a whole number"


def test_nearest_name_is_suggested_or_all_are_listed() -> None:
    assert suggest("exlude", ["include", "exclude"]) == "did you mean exclude?"
    assert suggest("zzz", ["include", "exclude"]) == "there are: include, exclude"


def test_every_key_of_the_collection_file_is_known() -> None:
    assert collection_from({"name": "docs", "sites": [SITE]}, "x") == Collection(name="docs", sites=[SITE])
