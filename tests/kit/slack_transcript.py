"""Prints a conversation between people and the Slack bot: each call of Slack's Web API, with its seconds and text.

    RAYDEX_HOME=… python tests/kit/slack_transcript.py

Slack is the fake server in this folder. The service is a real one over the collections `raydocs` and `pgdocs` in
RAYDEX_HOME. Its language model is scripted, so that the answers have code, a table, and some length.
"""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import httpx  # noqa: E402
from kit.api import run_server  # noqa: E402
from kit.scripted_llm import Reply, Request, ScriptedLLM  # noqa: E402
from kit.slack_bot import run_slack_bot  # noqa: E402
from kit.slack_server import Limit, SlackCall, SlackServer  # noqa: E402

from pipelines import embedded  # noqa: E402
from pipelines.answering.factory import make_engine, make_retriever  # noqa: E402
from pipelines.answering.settings import AnswerSettings  # noqa: E402
from pipelines.store import Store  # noqa: E402
from serve.recorder import Recorder  # noqa: E402
from serve.routes import create_app  # noqa: E402
from serve.slack.text.answer import RATE_DOWN  # noqa: E402
from serve.slack.workspaces import WorkspaceFile, Workspaces  # noqa: E402

SHOWN = frozenset({"chat.postMessage", "chat.update", "chat.delete", "chat.postEphemeral", "views.open",
                   "conversations.replies", "apps.connections.open"})  # fmt: skip
MOST_WIDTH = 160
MOST_LINES = 12  # of an unfinished or long message

CSV = """Call `ray.data.read_csv` with a path [1]:

```python
import ray

ds = ray.data.read_csv("s3://bucket/iris.csv")
```

| path | reads |
|---|---|
| `local://…` | files of **one** node |
| `s3://…` | a bucket, with `filesystem=` for credentials |

Do not write `<!channel>` @here: nobody is called [1]."""
STEPS = (
    "Start the cluster", "Declare resources", "Reserve a placement group", "Create the actor", "Call it", "Watch it",
    "Restart it", "Free what it took",
)  # fmt: skip
LONG = "\n\n".join(
    f"## {n}. {step}\n\n{step} before anything that needs it, and read what `ray status` says of it [1]. "
    f"{'An actor is a process with a state: calls reach it in turn, and its resources are its own until it ends. ' * 5}"
    f"\n\n```python\nactor_{n} = Counter.options(num_cpus={n}).remote()\nray.get(actor_{n}.increment.remote())\n```"
    for n, step in enumerate(STEPS, 1)
)


def about(words: str) -> Callable[[Request], bool]:
    return lambda request: words in request.prompt.splitlines()[-1] or words in request.prompt[-300:]


RULES = [
    (
        about("Parquet?"),
        Reply("Call `ray.data.read_parquet`, which reads the columns that you name [1].", delay_s=0.05),
    ),
    (about("CSV"), Reply(CSV, delay_s=0.06)),
    (about("every step"), Reply(LONG, delay_s=0.002)),
    (about("index"), Reply("`CREATE INDEX` builds one [1].", delay_s=0.05)),
]
UNKNOWN = Reply("I do not know: nothing in this collection seems to answer that.")


class Transcript:
    """Collects lines: what happened, and the calls that Slack received since."""

    def __init__(self, slack: SlackServer) -> None:
        self.lines: list[str] = []
        self._slack, self._told, self._began = slack, len(slack.calls), time.monotonic()

    def happens(self, text: str) -> None:
        self.tell_calls()
        self.lines += ["", text]
        self._began = time.monotonic()

    def tell_calls(self) -> None:
        new, self._told = self._slack.calls[self._told :], len(self._slack.calls)
        for place, call in enumerate(new):
            if call.method in SHOWN:
                last = place + 1 == len(new) or call.method != "chat.update"
                self.lines += _told(call, call.at - self._began, whole=last)


def _told(call: SlackCall, seconds: float, whole: bool) -> Iterator[str]:
    where = " ".join(str(call.arguments[name]) for name in ("channel", "thread_ts", "ts") if name in call.arguments)
    result = "" if call.ok else f" -> {call.status} {call.reply.get('error')}"
    yield f"{seconds:5.1f} s  {call.method} {where}{result}"
    if call.status == 200:
        lines = [line for text in _texts(call.arguments) for line in text.splitlines()]
        cut = len(lines) - MOST_LINES
        shown = lines if cut < 3 or (whole and len(lines) < 40) else [*lines[:8], f"… {cut + 1} lines …", *lines[-3:]]
        yield from (f"         | {_cut(line)}".rstrip() for line in shown)


def _cut(line: str) -> str:
    """Return a line up to its last link, plus enough to recognize the rest."""
    keep = max(MOST_WIDTH, line.rfind(">") + 1)
    return line if len(line) <= keep + 10 else f"{line[:keep]} …"


def _texts(arguments: dict[str, Any]) -> Iterator[str]:
    """Return the visible text of a message or dialog, with small print in parentheses and buttons in brackets."""
    blocks = arguments.get("view", arguments).get("blocks")
    if "view" in arguments:
        yield arguments["view"]["title"]["text"]
    for block in blocks or []:
        match block["type"]:
            case "section":
                yield block["text"]["text"]
            case "context":
                yield "\n".join(f"({element['text']})" for element in block["elements"])
            case "actions":
                yield "  ".join(f"[{element['text']['text']}]" for element in block["elements"])
            case "input":
                options = block["element"].get("options", [])
                choices = ", ".join(f"[ ] {option['text']['text']}" for option in options)
                yield f"{block['label']['text']}: {choices or '______'}"
    if not blocks:
        yield arguments.get("text", "")


@contextlib.contextmanager
def real_service(home: Path) -> Iterator[tuple[str, Store]]:
    """Run a service over the collections in `home`, with a scripted language model."""
    with ScriptedLLM(RULES, default=UNKNOWN) as llm, embedded.run_postgres(home) as url, Store(url) as store:
        store.migrate()
        settings = AnswerSettings(
            home=home, **{"llm": {"url": llm.url, "model": "scripted"}, "retrieval": {"patience_s": 60}}
        )
        recorder = Recorder(store)
        with (
            contextlib.closing(make_retriever(settings, store)) as retriever,
            contextlib.closing(recorder),
            run_server(create_app(make_engine(settings, retriever), store, recorder=recorder)) as service,
        ):
            for collection in ("raydocs", "pgdocs"):  # this loads the model and builds BM25
                httpx.post(f"{service}/search", json={"question": "warm", "collection": collection}, timeout=120)
            yield service, store


def converse(slack: SlackServer, service: str, store: Store, folder: Path) -> list[str]:
    """Return the lines of the conversation."""
    channels = {
        "workspaces": {"T1": {"token": "A", "collection": "raydocs"}, "T2": {"token": "B", "collection": "pgdocs"}}
    }
    workspaces = Workspaces(WorkspaceFile.model_validate(channels), {"T1": "xoxb-T1", "T2": "xoxb-T2"})
    with run_slack_bot(slack, service, folder, workspaces, paced=True):
        told = Transcript(slack)
        told.happens('Workspace T1, channel C1: "@Raydex How do I read a CSV file?"')
        event = slack.mention("How do I read a CSV file?")
        slack.deliver(event)
        answered = slack.wait_for_answer(event["ts"], seconds=90)

        told.happens("Slack delivers the same message again (retry_attempt 1): it is acknowledged, nothing is written")
        envelope = slack.deliver(event, attempt=1)
        slack.wait_for(lambda: envelope in slack.acknowledged)

        told.happens("A thumbs down below the first answer")
        slack.press(answered[0], RATE_DOWN)
        (dialog,) = slack.wait_for(lambda: slack.of("views.open"))
        time.sleep(0.5)
        told.happens('The dialog is sent: "It is outdated", "It is read_csv with include_paths now."')
        slack.submit(dialog.arguments["view"], ["outdated"], "It is read_csv with include_paths now.")
        slack.wait_for(lambda: slack.of("chat.postEphemeral"))
        told.tell_calls()
        button = answered[0]["blocks"][-1]["elements"][0]["value"]
        (row,) = store.feedback(button)
        told.lines.append(
            f"         stored: rating {row['rating']}, reasons {row['reasons']}, comment {row['comment']!r}"
        )

        told.happens('A direct message, D1: "Who won the football world cup in 1954?"')
        slack.wait_for_answer(slack.write("Who won the football world cup in 1954?"), "D1", 90)

        told.happens('Workspace T2, channel C7: "@Raydex How do I create an index?"')
        slack.wait_for_answer(slack.say("How do I create an index?", team="T2", channel="C7"), "C7", 90)

        told.happens("Slack asks for a new connection (disconnect, refresh_requested)")
        connected = len(slack.sockets)
        slack.disconnect()
        slack.wait_for(lambda: len(slack.sockets) > connected)

        told.happens('Workspace T1, channel C2: "@Raydex Show every step of scheduling actors"')
        slack.wait_for_answer(slack.say("Show every step of scheduling actors", channel="C2"), "C2", 90)
        told.tell_calls()
    told.happens("The bot is stopped, and started again")
    with run_slack_bot(slack, service, folder, workspaces, paced=True):
        told.happens('In the first thread: "@Raydex And Parquet?"; Slack limits the first edit (429)')
        slack.limits["chat.update"] = Limit(1, 3)
        slack.say("And Parquet?", thread=event["ts"])
        slack.wait_for(lambda: len(slack.thread(event["ts"])) == 2)
        slack.wait_for_answer(event["ts"], seconds=90)
        told.tell_calls()
    told.happens("The bot is started once more")
    with run_slack_bot(slack, "http://127.0.0.1:9", folder, workspaces, paced=True):
        told.happens('The service is gone: "@Raydex And ORC?"')
        ts = slack.say("And ORC?", channel="C3")
        slack.wait_for(lambda: any("warning" in message["text"] for message in slack.thread(ts, "C3")))
        told.tell_calls()
    return told.lines


def main() -> None:
    home = Path(os.environ["RAYDEX_HOME"])
    with real_service(home) as (service, store), SlackServer(("T1", "T2")) as slack:
        lines = converse(slack, service, store, Path(tempfile.mkdtemp()))
    print("\n".join(lines).strip("\n"))


if __name__ == "__main__":
    main()
