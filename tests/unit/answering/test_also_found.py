"""The closest sentence of a section that was found but not cited."""

import asyncio

import pytest
from kit.answering import make_hit

from pipelines.answering.grounding.support import Passages
from pipelines.answering.writing.also_found import LENGTH, closest_sentence, describe_found
from pipelines.answering.writing.citations import cite_closest
from pipelines.page.stored import readable_text
from pipelines.records import Answer
from serve.api.replies import HitOut


@pytest.mark.parametrize(("text", "said"), [
    ("Of nodes. At most `max_workers` start. Not all of these do.", "At most max_workers start. Not all of these do."),
    ("```yaml\nmax_workers: nodes\n```\n\n- one node\n- max_workers counts nodes", "max_workers counts nodes"),
    ("| name | says |\n| --- | --- |\n| a | x |\n| max_workers | all nodes |", "max_workers · all nodes"),
    (f"It has nodes and {'many, ' * 60}words.", f"It has nodes and {'many, ' * 29}many,…"),
    ("Nothing of it is said here.", "Nothing of it is said here."),
    ("> Note\n>\n> It counts all nodes.\n>\n> ```\n> x\n> ```", "It counts all nodes."),
    ("- `-nodes`, the number", "-nodes, the number"),
    ("What counts nodes is this:\n\n```\nx\n```", "What counts nodes is this:"),
    ("Here it counts nodes:\n\n- `max_workers`\n\n    ```\n    nodes\n    ```", "max_workers"),
    ("```\nmax_workers\n```", ""),
])  # fmt: skip
def test_closest_is_the_sentence_item_or_row_with_most_question_words(text: str, said: str) -> None:
    assert closest_sentence("How many nodes does max_workers count?", make_hit("https://d.test/a", text)) == said


def test_language_without_spaces_has_sentences_too() -> None:
    hit = make_hit("https://d.test/a", "集群由节点组成。\n\n最多启动四个工作节点。")
    assert closest_sentence("最多可以启动多少个工作节点？", hit) == "最多启动四个工作节点。"


@pytest.mark.parametrize(
    "text", ["", "-", "- ", "1. ", "> ", f"{'> ' * 3000}nodes", "|", "```", "- ![](x)", "| a |\n| - |"]
)
def test_any_section_has_a_short_closest_sentence(text: str) -> None:
    assert len(closest_sentence("How many nodes?", make_hit("https://d.test/a", text))) <= LENGTH


@pytest.mark.parametrize(("markdown", "read"), [
    ("| Name | Says |\n| --- | --- |\n| `a\\|b` | pipes \\| here |", "Name · Says\na|b · pipes | here"),
    ("|  |  |\n| --- | --- |\n| e |  |", "e"),
    ("```\ncat x | grep y\n```", "cat x | grep y"),
    ("-   One `x`\n-   [Two](https://d.test/)", "One x\nTwo"),
])  # fmt: skip
def test_snippet_outside_its_page_has_no_markdown_syntax(markdown: str, read: str) -> None:
    assert readable_text(markdown) == read


def test_no_snippet_of_an_answer_has_table_bars() -> None:
    table = "| Name | Says |\n| --- | --- |\n| max_workers | all nodes |"
    hit, other = make_hit("https://d.test/a", table), make_hit("https://d.test/b", table)
    (citation,) = cite_closest("I do not know. [1]", (hit,))
    (found,) = describe_found(Answer("max_workers?", "So.", hits=(other,)))
    support = asyncio.run(Passages((hit,)).check("max_workers counts all nodes", [1]))
    for snippet in (citation.snippet, found["snippet"], support[1].window, HitOut.model_validate(hit).text):
        assert "max_workers · all nodes" in snippet and "|" not in snippet
