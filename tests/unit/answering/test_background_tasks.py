"""A chat client's tasks about a conversation are not questions of readers, and questions are not tasks.

The prompts in tests/data are in our own words. Verbatim prompts of clients, which have their makers' licenses, are read
from `RAYDEX_DATA/clients/` if it exists: `*.yaml` as in tests/data, and Open WebUI's `backend/open_webui/config.py` as
`open_webui_config.py`.
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.answering.conversation import background
from pipelines.answering.conversation.background import empty_reply, find_background_task
from pipelines.records import Message
from pipelines.text.phrases import compile_phrases, read_table

ROOT = Path(__file__).parents[3]
QUESTIONS = ROOT / "benchmarks" / "questions"
WORD_FOR_WORD = Path(os.environ.get("RAYDEX_DATA") or ROOT.parent / "shared" / "data") / "clients"
TASKS: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "data" / "background_tasks.yaml").read_text())
OPEN_WEBUI = WORD_FOR_WORD / "open_webui_config.py"
CHAT = "USER: {ask}\nASSISTANT: Call `ray.data.read_csv`.\nUSER: And Parquet?\nASSISTANT: Call read_parquet."
ASK = "How do I load a CSV file?"
HISTORY = (Message("user", ASK), Message("assistant", "Call `ray.data.read_csv`."))


def messages_of(task: dict[str, Any], ask: str = ASK) -> list[Message]:
    """Return a client's messages for a conversation that ended with `ask`."""

    def filled(text: str) -> str:
        return text.replace("{chat}", CHAT).replace("{ask}", ask)

    system = [Message("system", filled(task["system"]))] if "system" in task else []
    return [*system, *(HISTORY if task.get("history") else ()), Message("user", filled(task["user"]))]


def questions() -> Iterator[str]:
    """Return readers' questions and side remarks in many languages."""
    for path in sorted(QUESTIONS.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            yield from (
                row[name] for name in ("question", "message", "first", "second", "en") if isinstance(row.get(name), str)
            )


SAMPLE = list(dict.fromkeys(questions()))[::150]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["of"])
def test_task_about_a_conversation_is_recognized_with_its_empty_reply(task: dict[str, Any]) -> None:
    for ask in (ASK, "¿Cómo leo un CSV?", "what does `### Task:` mean in a prompt?\n\nI saw it in my log", "ok"):
        found = find_background_task(sent := messages_of(task, ask))
        assert found is not None and found.messages == tuple(sent)
        assert found.empty == task["empty"]


@pytest.mark.skipif(not [*WORD_FOR_WORD.glob("*.yaml")], reason=f"needs {WORD_FOR_WORD}/*.yaml (set RAYDEX_DATA)")
def test_verbatim_prompts_of_clients_are_recognized() -> None:
    tasks = [task for path in WORD_FOR_WORD.glob("*.yaml") for task in yaml.safe_load(path.read_text("utf-8"))]
    for task in tasks:
        found = find_background_task(messages_of(task))
        assert found is not None and found.empty == task["empty"], task["of"]
    assert len(tasks) >= 5


# The empty reply to each task of Open WebUI, by the name of its template.
EMPTY_REPLIES = {
    "TITLE_GENERATION": '{"title": ""}',
    "TAGS_GENERATION": '{"tags": []}',
    "IMAGE_PROMPT_GENERATION": '{"prompt": ""}',
    "QUERY_GENERATION": '{"queries": []}',
    "FOLLOW_UP_GENERATION": '{"follow_ups": []}',
    "AUTOCOMPLETE_GENERATION": '{"text": ""}',
    "TOOLS_FUNCTION_CALLING": '{"tool_calls": []}',
    "EMOJI_GENERATION": "",
    "MOA_GENERATION": "",
}


def open_webui_templates() -> dict[str, str]:
    """Return Open WebUI's templates by name, parsed from its source without running it."""
    found: dict[str, str] = {}
    for node in ast.parse(OPEN_WEBUI.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = re.fullmatch(r"DEFAULT_(\w+)_PROMPT_TEMPLATE", node.targets[0].id)
            if name and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                found[name[1]] = node.value.value
    return found


def fill(template: str, ask: str) -> str:
    """Fill in a template like Open WebUI."""
    for mark, text in (
        (r"\{\{MESSAGES(:\w+)*\}\}", CHAT.format(ask=ask)),
        (r"\{\{(prompt|PROMPT)(:\w+)*\}\}", ask),
        (r"\{\{responses\}\}", 'Response from a: """Call read_csv."""\n\nResponse from b: """Use pandas."""'),
        (r"\{\{TOOLS\}\}", '[{"name": "clock", "parameters": {}}]'),
        (r"\{\{TYPE\}\}", "General"),
        (r"\{\{CURRENT_DATE\}\}", "2026-01-31"),
    ):
        template = re.sub(mark, lambda _, text=text: text, template)  # type: ignore[misc]
    return template


@pytest.mark.skipif(not OPEN_WEBUI.is_file(), reason=f"needs {OPEN_WEBUI} (set RAYDEX_DATA)")
@pytest.mark.parametrize("name", EMPTY_REPLIES)
def test_each_verbatim_task_of_open_webui_is_recognized(name: str) -> None:
    for ask in (ASK, "¿Cómo leo un CSV?", "ok"):
        prompt = fill(open_webui_templates()[name], ask)
        sent = [Message("user", prompt)]
        if name == "TOOLS_FUNCTION_CALLING":
            sent = [
                Message("system", prompt),
                Message("user", f"Query: History:\n{CHAT.format(ask=ask)}\nQuery: {ask}"),
            ]
        found = find_background_task(sent)
        assert found is not None, prompt
        assert found.empty == EMPTY_REPLIES[name]


@pytest.mark.skipif(not OPEN_WEBUI.is_file(), reason=f"needs {OPEN_WEBUI} (set RAYDEX_DATA)")
def test_question_under_the_voice_prompt_of_open_webui_is_a_question() -> None:
    system = open_webui_templates()["VOICE_MODE"]
    assert find_background_task([Message("system", system), Message("user", ASK)]) is None


def test_no_question_of_a_reader_is_taken_for_a_task() -> None:
    asked = list(questions())
    assert len(asked) > 10_000
    for ask in asked:
        assert find_background_task([Message("user", ask)]) is None, ask
        assert find_background_task([*HISTORY, Message("user", ask)]) is None, ask


BEGINS = compile_phrases(read_table(background.__name__))["begins"]
QUOTING = (
    "{ask}\n\nMy client also sends this:\n{prompt}",
    "{prompt}\n\n{ask}",
    "Open WebUI sends the prompt below to the assistant. {ask}\n\n```\n{prompt}\n```",
    "```\n{prompt}\n```\n{ask}",
    "> {prompt}\n\n{ask}",
    'What does "### Task:" mean? {ask}',
    "### Task\n{ask}",
)


@pytest.mark.parametrize("ask", SAMPLE)
def test_question_that_quotes_a_task_is_a_question(ask: str) -> None:
    prompt = messages_of(TASKS[0])[-1].content
    for shape in QUOTING:
        if shape.startswith("{prompt}") and not ask.endswith("?"):
            continue  # after a whole prompt, only a question mark shows that a reader continues
        if shape.startswith("{ask}") and BEGINS.match(ask) and not ask.endswith("?"):
            continue  # before one, an order such as "make postgres write …" may be the first line of the task
        quoting = shape.format(ask=ask, prompt=prompt)
        assert find_background_task([Message("user", quoting)]) is None, quoting
        assert find_background_task([*HISTORY, Message("user", quoting)]) is None, quoting


@pytest.mark.parametrize("said", [
    "How do I generate a title for a conversation as JSON, in Open WebUI?",
    "Write a function that returns only the title of a page.", "Give me an example of the conversation parameter.",
    "Give me a summary of the chat API in 3 sentences, only the essentials.",
    "Summarize the chapter on messages in 5 words.", "Explain the JSON format of a message.",
    "Create a tag for a conversation with the API: which fields does the JSON object have?",
    "Based on the logs below, what is wrong?\n\n```\nuser: root\nerror: no title\n```",
    "Return the query only as JSON: is there a parameter for that?", "summarize the above", "in one word: yes or no?",
    "Read this message and tell me what to do:\n\nUser: root\nDo not use JSON", "总结一下 Ray Data 的用法", "",
])  # fmt: skip
def test_request_of_a_reader_is_not_a_task(said: str) -> None:
    for before in ((), HISTORY, (Message("system", "You are a helpful assistant. Answer only in JSON."),)):
        assert find_background_task([*before, Message("user", said)]) is None


@pytest.mark.parametrize("system", [
    "You are Cline, a skilled software engineer. Use one tool a message. Respond only with JSON. The user's message …",
    "You are a helpful assistant. Today is Monday. Keep conversations friendly. Do not use emojis.",
    "You help the user of this chat. Never answer in JSON. If asked for a title, give one.",
])  # fmt: skip
def test_system_message_of_an_assistant_does_not_make_a_task(system: str) -> None:
    assert find_background_task([Message("system", system), Message("user", ASK)]) is None


@pytest.mark.parametrize(("instruction", "empty"), [
    ('JSON: {"a": {"b": [1], "c": 2.5}, "d": null, "e": true}', '{"a": {"b": [], "c": 0.0}, "d": null, "e": false}'),
    ('as JSON, like {"a": …}', "{}"), ('{"a": ' * 700, ""), ("Only the title.", ""), ('{"a": "b"', ""),
])  # fmt: skip
def test_empty_reply_has_the_fields_of_the_format(instruction: str, empty: str) -> None:
    assert empty_reply(instruction) == empty


@pytest.mark.parametrize(
    "piece", ["{", '{"a":', "{{fill", "user:\n", "create a ", "<chat_history>", "return a a a ", "\n\n", "a"]
)
def test_no_text_is_slow(piece: str) -> None:
    text = "### Task: create a title of the conversation as JSON " + piece * (100_000 // len(piece))
    find_background_task([Message("user", text)])
    find_background_task([Message("system", text), Message("user", text)])
