"""Parts of a claim that can be looked up are looked up: code, commands, flags, names, numbers, and a "not"."""

import asyncio

import pytest
from kit.answering import make_hit

from pipelines.answering.grounding.exact import tokens_of
from pipelines.answering.grounding.support import Passages
from pipelines.answering.writing.attribution import Attributor
from pipelines.answering.writing.citations import CheckedStatement, count_claims
from pipelines.answering.writing.stages.text import read_text
from pipelines.records import Reason

PAGE = """Run `tool serve --port 8080` to serve the files of a folder. A request may take 30 seconds at most.

You cannot read the logs of a node that is dead. The cache is not shared between the workers of a pool.

Call `store.read_rows(limit=5)` to read rows from Postgres 16. Set `retries` to try a request two times.

```yaml
server:
  workers: 4
  keep_alive: true
```

```python
from tool import Client
client = Client(url)
client.send_all(rows)
```
"""
OTHER = (
    "The command `tool build --out dist` writes the pages of the site to a folder. It takes 3 minutes on Kubernetes."
)
HITS = (make_hit("https://d.test/serve", PAGE, ("Serving",)), make_hit("https://d.test/build", OTHER, ("Building",)))


def check(text: str, question: str = "", hits=HITS) -> list[CheckedStatement]:
    attributor = Attributor(Passages(hits, question=question), lambda _: None)
    asyncio.run(attributor.feed(read_text(text)))
    return attributor.checked


def reason(text: str, question: str = "") -> Reason | None:
    return check(text, question)[0].why


@pytest.mark.parametrize(("claim", "nowhere"), [
    ("Run `tool serve --host` to serve the files of a folder.", "--host"),
    ("Run tool serve --host to serve the files of a folder.", "--host"),
    ("Run `tool watch` to serve the files of a folder.", "tool watch"),
    ("Call `store.read_columns()` to read rows.", "store.read_columns"),
    ("Call `read_columns` to read rows of a folder.", "read_columns"),
    ("Set the variable TOOL_HOME to serve the files of a folder.", "TOOL_HOME"),
    ("Set `attempts` to try a request two times.", "attempts"),
    ("A request may take 45 seconds at most.", "45"),
    ("A request may take 30 minutes at most.", "30"),
    ("Read rows from Postgres 17 with a limit.", "17"),
    ("Serve the files of a folder with Nginx and a request.", "Nginx"),
    ("```\ntool serve --host\n```\n", "--host"),
    ("```yaml\nserver:\n  threads: 4\n```\n", "threads"),
    ("```python\nclient = Client(url)\nclient.send_some(rows)\n```\n", "send_some"),
    ("```console\n$ tool watch\n```\n", "tool watch"),
])  # fmt: skip
def test_what_is_in_no_passage_is_not_supported_and_named(claim: str, nowhere: str) -> None:
    found = reason(claim)
    assert found == Reason("nowhere", nowhere)
    assert not check(claim)[0].supported


@pytest.mark.parametrize("claim", [
    "Run `tool serve --port 8080` to serve the files of a folder.",
    "Run `tool serve --port <port>` to serve the files of your folder.",
    "A request may take 30 s at most.",
    "A request is tried 2 times if you set `retries`.",
    "Call `read_rows` or `store.read_rows(limit=5)` to read rows from Postgres 16.",
    "```yaml\n# four of them\nserver:\n  workers: 8\n  keep_alive: false\n```\n",
    "```python\nfrom tool import Client\nmine = Client(url)\nfor row in rows:\n    print(mine.send_all(row))\n```\n",
    "```sh\ncd project\ntool serve --port 9000\n```\n",
])  # fmt: skip
def test_what_a_reader_fills_in_is_not_looked_up(claim: str) -> None:
    assert reason(claim) is None


@pytest.mark.parametrize(("claim", "question"), [
    ("A request may take 45 seconds at most.", "why does my request take 45 seconds?"),
    ("Read rows with `read_columns`, which reads rows.", "what does read_columns do?"),
    ("Serve the files of a folder behind Nginx.", "can I serve files behind nginx?"),
])  # fmt: skip
def test_what_the_question_names_is_not_the_claims_own(claim: str, question: str) -> None:
    assert reason(claim) and reason(claim, question) is None


def test_a_plain_word_of_the_question_is_no_setting() -> None:
    assert reason("Set `subnet` to serve the files of a folder.", "how do I set a subnet?") == Reason(
        "nowhere", "subnet"
    )


@pytest.mark.parametrize(("claim", "denied"), [
    ("You can read the logs of a dead node.", True),
    ("You cannot read the logs of a dead node.", False),
    ("The cache is shared between the workers of a pool.", True),
    ("The cache is never shared between the workers of a pool.", False),
    ("A request may not take 30 seconds at most.", True),
    ("If a node is dead, you can read the logs of it.", False),
])  # fmt: skip
def test_a_claim_that_a_passage_denies_is_not_supported(claim: str, denied: bool) -> None:
    found = reason(claim)
    assert bool(found) is denied
    assert not denied or (found and found.kind == "denied" and not check(claim)[0].supported)


@pytest.mark.parametrize(("passage", "claim", "weaker"), [
    ("Admins can delete a project.", "Only admins can delete a project.", True),
    ("Only admins can delete a project.", "Only admins can delete a project.", False),
    ("Nobody but admins can delete a project.", "Admins can delete a project.", False),
    ("You can set a token for private repositories.", "You must set a token for private repositories.", True),
    ("Set a token for private repositories.", "You must set a token for private repositories.", False),
    ("Private repositories require a token. You can set the token for private repositories in a file.",
     "You must set a token for private repositories.", False),
    ("A tag is optional in the name of an image.", "A tag is always in the name of an image.", True),
    ("Open the file in read mode with a flag.", "Open the file in read-only mode with a flag.", False),
    ("Administratoren können ein Projekt löschen.", "Nur Administratoren können ein Projekt löschen.", True),
    ("Vous pouvez définir un jeton pour ce dépôt.", "Vous devez définir un jeton pour ce dépôt.", True),
    ("支持 Linux 服务器上的部署模式。", "仅支持 Linux 服务器上的部署模式。", True),
])  # fmt: skip
def test_claim_with_more_force_than_its_passage_is_not_supported(passage: str, claim: str, weaker: bool) -> None:
    (one,) = check(claim, hits=(make_hit("https://d.test/x", passage, ()),))
    assert (one.why is not None and one.why.kind == "denied") is weaker


@pytest.mark.parametrize(("passage", "claim"), [
    ("Die Protokolle toter Knoten lassen sich nicht lesen.", "Die Protokolle toter Knoten lassen sich lesen."),
    ("No se pueden leer los registros de un nodo muerto.", "Se pueden leer los registros de un nodo muerto."),
    ("Нельзя прочитать журналы остановленного узла.", "Можно прочитать журналы остановленного узла."),
    ("停止したノードのログを読むことはできません。", "停止したノードのログを読むことができます。"),
])  # fmt: skip
def test_other_languages_deny_with_their_own_words(passage: str, claim: str) -> None:
    (one,) = check(claim, hits=(make_hit("https://d.test/x", passage, ()),))
    assert one.why and one.why.kind == "denied"
    (same,) = check(passage, hits=(make_hit("https://d.test/x", passage, ()),))
    assert same.why is None and same.supported


@pytest.mark.parametrize("claim", [
    "The metrics `http_req_*` and `ws_{id}` count requests.",
    "All metrics that match `*_total` count requests, as http_req_* do.",
    "The first byte of a request is `0x62`.",
    "Since v0.53 it counts requests.",
    "Since version 0.54.0 it counts requests.",
])  # fmt: skip
def test_patterns_and_versions_of_the_same_thing_are_found(claim: str) -> None:
    passage = "Since 0.53.0 and 0.54 it counts requests: http_req_count, ws_count and http_total. The byte is 0x62."
    (one,) = check(claim, hits=(make_hit("https://d.test/x", passage, ()),))
    assert one.why is None or one.why.kind == "words"


@pytest.mark.parametrize(("claim", "nowhere"), [
    ("Since v0.52 it counts requests.", "0.52"), ("Since 0.5 it counts requests.", "0.5"),
    ("The byte of a request is `0x63`.", "0x63"),
])  # fmt: skip
def test_other_versions_and_numbers_are_in_no_passage(claim: str, nowhere: str) -> None:
    passage = "Since 0.53.0 it counts requests. The byte is 0x62."
    (one,) = check(claim, hits=(make_hit("https://d.test/x", passage, ()),))
    assert one.why and (one.why.kind, one.why.text) == ("nowhere", nowhere)


def test_capital_letters_of_nouns_name_nothing_in_german() -> None:
    names = [one.text for one in tokens_of("Die Datei liegt im Ordner der Anwendung.", names=False)]
    assert names == []


def test_what_is_in_another_passage_moves_the_citation() -> None:
    (one,) = check("The command `tool build --out dist` writes the pages of the site to a folder [1].")
    assert not one.given[1].enough and one.added[2].enough


def test_what_continues_about_a_name_that_is_nowhere_is_not_supported() -> None:
    text = "Run `tool watch` to serve the files of a folder. This serves the files of a folder."
    assert [one.supported for one in check(text)] == [False, False]
    assert [one.supported for one in check(text[49:])] == [True]


def test_yes_is_supported_by_a_sentence_only() -> None:
    assert check("Yes, a request may take 30 seconds at most.")[0].supported
    assert not check("Yes, a request of the workers may read rows of the cache.")[0].supported


def test_reasons_are_counted_with_the_claims() -> None:
    claims = count_claims(check("Run `tool watch` to serve files of a folder. Bears eat honey in the woods."))
    assert claims.unsupported[1] == "Bears eat honey in the woods."
    assert claims.reasons == (Reason("nowhere", "tool watch"), Reason())
    assert (claims + claims).reasons == claims.reasons * 2
