"""Markdown becomes mrkdwn within Slack's limits and pings nobody, and a question names no person."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.slack_bot import answer, citation
from kit.slack_server import MOST_BLOCKS
from kit.xss import PAYLOADS

from serve.chat.packing import FENCE, pack
from serve.chat.question import Asked
from serve.chat.reply import AnswerView
from serve.slack.text.answer import MOST_MESSAGE, MOST_SECTION, pack_messages, to_messages
from serve.slack.text.mrkdwn import MOST_WIDTH, escape, link, to_fragments
from serve.slack.text.question import read_question, read_text


def pack_sections(fragments):
    return pack(fragments, MOST_SECTION)


LINKS = {1: "https://d.test/data#csv", 2: "https://d.test/two"}


def rendered(markdown: str) -> str:
    return "\n\n".join(map(str, to_fragments(markdown, LINKS)))


@pytest.mark.parametrize(("markdown", "mrkdwn"), [
    ("# Read **CSV** files", "*Read CSV files*"),
    ("**bold**, *slanted*, ~~gone~~", "*bold*, _slanted_, ~gone~"),
    ("re**start**ed", "re\u200b*start*\u200bed"),
    ("Call `a<b` & `c`", "Call `a&lt;b` &amp; `c`"),
    ("``a`b``", "`aˋb`"),
    ("So [1].", "So <https://d.test/data#csv|[1]>."),
    ("So [1][2] and [2][1].", ("So <https://d.test/data#csv|[1]><https://d.test/two|[2]> and "
     "<https://d.test/two|[2]><https://d.test/data#csv|[1]>.")),
    ("`x[1]` and x[7]", "`x[1]` and x[7]"),
    ("[the *docs*](https://d.test/a?b=1&c=2)", "<https://d.test/a?b=1&amp;c=2|the docs>"),
    ("see https://d.test/a_b.", "see <https://d.test/a_b|https://d.test/a_b>."),
    ("![a map](https://d.test/m.png)", "<https://d.test/m.png|a map>"),
    ("a\nb  \nc", "a b\nc"),
    ("> wise\n> words", "> wise words"),
    ("- a\n- b\n\n1. c", "• a\n\n• b\n\n1. c"),
    ("---", "———"),
    ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
    ("| name | 漢字 |\n|---|---|\n| **a** `b` | 1 |\n| c | [x](https://d.test) |",
     "```\nname | 漢字\n-----+-----\na b  | 1\nc    | x\n```"),
    ("```python\nif a < b:\n\treturn `x[1]`\n```", "```\nif a &lt; b:\n    return `x[1]`\n```"),
])  # fmt: skip
def test_markdown_becomes_slack_markup(markdown, mrkdwn):
    assert rendered(markdown) == mrkdwn


def test_lists_can_be_nested_and_contain_code():
    fragments = to_fragments("3. one\n   - inner\n\n     ```python\n     x = 1\n     ```\n4. two", {})
    assert pack_sections(fragments) == ["3. one\n    ◦ inner\n```\nx = 1\n```\n4. two"]


def test_fence_inside_code_does_not_end_it():
    text = rendered("~~~~\n```\nx\n```\n~~~~")
    assert text.count(FENCE) == 2 and text.startswith(FENCE) and text.endswith(FENCE)


@pytest.mark.parametrize("text", [
    "<!channel>", "<!here|here>", "<!everyone>", "<@U123>", "<@U123|ann>", "<!subteam^S1|@team>", "<#C1>", "@channel",
    "@Here", "@everyone", "`<!channel>`", "```\n<!channel> <@U1>\n```", "[<!channel>](https://d.test)",
    "[a](https://d.test/><!channel>)", "[a](https://d.test/|<!here>)", "https://d.test/<!channel>",
    "| <!channel> |\n|---|\n| <@U1> |", "> <!here>", "# <!channel>", "![<!here>](https://d.test)", "&lt;!channel&gt;",
    "<https://evil.test|click>", "[a]( <!channel> )", "**<@U1>**", "<!date^1^{date}|x>",
])  # fmt: skip
def test_text_of_pages_and_models_pings_nobody_and_adds_no_links(text):
    shown = rendered(text)
    assert re.findall(r"<(?!https?://[^<>|\s]+(?:\|[^<>]*)?>)", shown) == []
    outside = re.sub(r"`[^`]*`", "", shown)
    assert not re.search(r"@(here|channel|everyone)", outside, re.IGNORECASE)


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_links_lead_only_to_web_addresses(payload):
    for target in re.findall(r"<([^<>|]*)", rendered(str(payload))):
        assert re.match(r"https?://[^\s\"'`]+$", target, re.IGNORECASE)


@given(st.text(max_size=300), st.text(max_size=40))
def test_link_with_any_content_stays_one_link(url, label):
    shown = link("https://d.test/" + url, label)
    assert re.fullmatch(r"<https://d\.test/[^<>|\s]*(\|[^<>\n]*)?>", shown)


@given(st.text(alphabet="ab <>&@`*_~[]()1|#-\n!/:", max_size=400))
def test_brackets_in_every_text_stay_escaped(text):
    assert re.findall(r"<(?!https?://)", rendered(text)) == []


@pytest.mark.parametrize(
    "url", ["https://d.test/?" + "a=1&" * 450, "https://d.test/" + "漢" * 400, "https://d.test/" + "a" * 2500]
)
def test_link_of_any_length_is_never_cut(url):
    hits = [{"source": f"{url}{n}", "title": "T & " * 200, "headings": []} for n in range(3)]
    view = AnswerView(to_messages)
    view.take("hits", {"hits": hits})
    shown = [*blocks_of(view, "context"), *pack_sections(to_fragments(f"[{'label ' * 900}]({url}) [x]({url})", {}))]
    for text in shown:
        assert len(text) <= MOST_SECTION and not re.search(r"<[^>]*$|&[a-z]*$", text)


def test_short_pieces_share_a_section_and_long_ones_are_split_at_words():
    assert pack_sections(to_fragments("a\n\nb", {})) == ["a\n\nb"]
    sections = pack_sections(to_fragments("word &amp; " * 1500, {}))
    assert len(sections) > 2 and max(map(len, sections)) <= MOST_SECTION
    assert set(" ".join(sections).split()) == {"word", "&amp;"}


@pytest.mark.parametrize("text", ["x" * 9000, "&" * 5000, "<" * 5000 + " a", "漢" * 7000])
def test_endless_word_is_cut_between_characters(text):
    sections = pack_sections(to_fragments(text, {}))
    assert max(map(len, sections)) <= MOST_SECTION
    assert "".join(sections) == escape(text).strip()


def test_code_block_is_never_split_if_it_fits_and_otherwise_closed():
    code = "```\n" + "x = 1\n" * 400 + "```"
    messages = pack_messages(to_fragments(f"{'word ' * 500}\n\n{code}\n\n{'more ' * 500}", {}))
    assert len(messages) > 1
    assert [m.text.count("x = 1") for m in messages if FENCE in m.text] == [400]
    long = pack_messages(to_fragments("```\n" + "some_call(argument)\n" * 900 + "```", {}))
    texts = [block["text"]["text"] for message in long for block in message.blocks]
    assert all(text.startswith(FENCE + "\n") and text.endswith("\n" + FENCE) for text in texts)
    assert sum(text.count("some_call(argument)\n") for text in texts) == 900


def test_messages_keep_slack_limits_and_nothing_is_lost():
    text = "\n\n".join(f"## Part {n}\n\n{'word ' * 120}\n\n```\ncode {n}\n```" for n in range(40))
    messages = pack_messages(to_fragments(text, {}))
    assert all(len(m.text) <= MOST_MESSAGE + 100 < 4_000 and len(m.blocks) <= MOST_BLOCKS for m in messages)
    whole = "\n".join(m.text for m in messages)
    assert [int(n) for n in re.findall(r"code (\d+)", whole)] == list(range(40))


def test_heading_stays_with_its_text():
    text = "\n\n".join(f"## Part {n}\n\n{'word ' * 130}" for n in range(9))
    sections = pack_sections(to_fragments(text, {}))
    assert len(sections) > 1 and not [one for one in sections if re.search(r"\*Part \d\*$", one)]
    assert sum(one.count("*Part ") for one in sections) == 9


def test_table_output_grows_with_its_cell_contents_only() -> None:
    short = rendered("|a|b|c|\n|-|-|-|\n|1|\n|1|2|3|4|")
    assert short == "```\na | b | c\n--+---+--\n1\n1 | 2 | 3\n```"
    long = "x" * 500
    assert rendered(f"|a|b|\n|-|-|\n|{long}|c|\n|d|e|").endswith(f"\n{long} | c\nd{' ' * (MOST_WIDTH - 1)} | e\n```")
    wide = f"{'|a' * 5_000}|\n{'|-' * 5_000}|\n" + "|x|\n" * 5_000  # 25 million cells if each row were filled
    assert sum(len(one.text) for one in to_fragments(wide, {})) < 100_000


# ---------------------------------------------------------------------------------------------- answers


def blocks_of(view: AnswerView, kind: str) -> list[str]:
    blocks = [block for message in view.messages() for block in message.blocks if block["type"] == kind]
    shown = [[b["text"]] if kind == "section" else b["elements"] for b in blocks]
    return [one["text"] for ones in shown for one in ones]


def whole(**more):
    view = AnswerView(to_messages)
    view.take("answer", answer(**more))
    return view


CLAIMS = {"total": 2, "supported": 1}


def test_answer_has_its_sources_its_confidence_and_buttons():
    sources = [citation(), citation(2, "https://d.test/b", "B", supported=False)]
    view = whole(text="So [1].", citations=sources, also_found=[citation(3, "https://d.test/c", "C")], claims=CLAIMS)
    assert blocks_of(view, "section") == [
        f"So <{LINKS[1]}|[1]>.",
        f"*Sources*\n[1] <{LINKS[1]}|Data › CSV>\n[2] <https://d.test/b|B> _(weak support)_",
    ]
    found = ["Also found", "<https://d.test/c|C>"]
    assert blocks_of(view, "context") == [*found, "High confidence · 1 of 2 claims supported by a source"]
    (message,) = view.messages()
    assert [one["value"] for one in message.blocks[-1]["elements"]] == ["a1", "a1"]


def test_unknown_answer_lists_the_closest_sections():
    view = whole(text="I do not know.", known=False, confidence="low")
    assert blocks_of(view, "section") == [
        "I do not know.",
        f"*The closest sections of the documentation*\n[1] <{LINKS[1]}|Data › CSV>",
    ]
    assert blocks_of(view, "context") == []


def test_results_list_their_sections_once_and_are_not_called_an_answer():
    view = whole(text="**CSV** [1]\n\nCall it.", form="results", claims={"total": 0})
    assert blocks_of(view, "section") == [f"*CSV* <{LINKS[1]}|[1]>\n\nCall it."]
    assert blocks_of(view, "context")[-1] == "Search results, not an answer"
    view = whole(text="I do not know.", form="results", known=False)
    assert "Search results, not an answer" not in blocks_of(view, "context")


def test_human_answer_and_truncated_answer_say_so():
    assert blocks_of(whole(text="So.", written_by="person"), "context") == ["Answer written by a person"]
    (said,) = blocks_of(whole(text="So.", degraded=["truncated", "bm25", "rerank", "llm:a"]), "context")
    assert said == (
        "The language model was cut off: this answer is not complete. · Keyword search was not available. · "
        "Answered without rerank. · A language model failed: another one answered."
    )


def test_labels_around_an_answer_are_in_the_language_of_its_question():
    asked = Asked("team", "channel", "1", "1", "Wie lese ich eine CSV-Datei?")
    view = AnswerView(to_messages, "ray", asked.language)
    assert blocks_of(view, "section") == ["_Suche läuft …_ *ray*"]
    view.take("answer", answer("So [1].", [citation(supported=False)], claims=CLAIMS))
    assert blocks_of(view, "section")[1] == f"*Quellen*\n[1] <{LINKS[1]}|Data › CSV> _(schwach belegt)_"
    assert blocks_of(view, "context") == ["Sehr verlässlich · 1 von 2 Aussagen durch eine Quelle belegt"]
    buttons = view.messages()[-1].blocks[-1]
    assert [one["text"]["text"] for one in buttons["elements"]] == [
        ":thumbsup: Gute Antwort", ":thumbsdown: Schlechte Antwort",
    ]  # fmt: skip
    assert buttons["block_id"].endswith(" de")


def test_many_sources_with_long_names_keep_the_limits():
    sources = [citation(n, f"https://d.test/{n}/{'x' * 1900}", "T" * 500) for n in range(1, 41)]
    (message,) = whole(text="So.", citations=sources).messages()
    texts = [block["text"]["text"] for block in message.blocks if block["type"] == "section"]
    assert max(map(len, texts)) <= MOST_SECTION and len(message.blocks) <= MOST_BLOCKS
    assert texts[-1].endswith("_+ 30_")


def test_view_follows_the_stream():
    view = AnswerView(to_messages, "ray")
    assert blocks_of(view, "section") == ["_Searching…_ *ray*"]
    view.take("hits", {"hits": [{"source": LINKS[1], "title": "Data", "headings": ["Data", "CSV"]}]})
    assert blocks_of(view, "context") == ["Found sections", f"<{LINKS[1]}|Data › CSV>"]
    view.take("status", {"stage": "reading", "passages": 5, "tokens": 900, "seconds": 41.2})
    assert blocks_of(view, "section") == ["_Reading 1 page, about 41 s…_"]
    view.take("delta", {"text": "Never"})
    view.take("delta", {"text": "Call `f` [1]", "reset": True})
    assert blocks_of(view, "section") == [f"Call `f` <{LINKS[1]}|[1]>"]
    view.fail("The service stopped.")
    assert blocks_of(view, "section") == [f"Call `f` <{LINKS[1]}|[1]>\n\n:warning: The service stopped."]


# ---------------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize(("text", "question"), [
    ("<@U0BOT> How do I read a CSV file?", "How do I read a CSV file?"),
    ("<@U0BOT>: how, <@U5|ann>?", "how, ?"),
    ("what is &lt;tag&gt; &amp; co", "what is <tag> & co"),
    ("see <https://d.test/a|the page> and <https://d.test>", "see the page (https://d.test/a) and https://d.test"),
    ("<https://d.test|d.test>?", "https://d.test?"),
    ("ask in <#C1|help> <!here>", "ask in #help"),
    ("<mailto:a@b.c|a@b.c>", "a@b.c"),
    ("<@U0BOT> why\n```\na  b\n```", "why\n```\na  b\n```"),
    ("<@U0BOT>", ""),
])  # fmt: skip
def test_question_is_read_as_its_author_sees_it_and_names_no_person(text, question):
    assert read_text(text) == question


MENTION = {"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.2", "text": "<@U0BOT> how?"}
DIRECT = {"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1.2", "text": "how?"}


def test_mentions_and_direct_messages_are_questions():
    assert read_question(MENTION, "T1", "U0BOT") == Asked("T1", "C1", "1.2", "1.2", "how?")
    assert read_question({**MENTION, "thread_ts": "1.0"}, "T1", "U0BOT").thread == "1.0"
    assert read_question(DIRECT, "T1", "U0BOT").question == "how?"
    assert read_question({**DIRECT, "subtype": "file_share"}, "T1", "U0BOT")


@pytest.mark.parametrize("change", [
    {"subtype": "message_changed"}, {"subtype": "message_deleted"}, {"subtype": "bot_message"}, {"bot_id": "B9"},
    {"user": "U0BOT"}, {"user": None}, {"user": "USLACKBOT"}, {"subtype": "channel_join"}, {"edited": {"ts": "1.3"}},
    {"type": "reaction_added"}, {"hidden": True}, {"channel": None}, {"ts": ""}, {"subtype": "channel_topic"},
])  # fmt: skip
@pytest.mark.parametrize("event", [MENTION, DIRECT], ids=["mention", "direct"])
def test_edits_joins_and_bots_ask_nothing(event, change):
    assert read_question({**event, **change}, "T1", "U0BOT") is None


def test_channel_message_without_a_mention_is_ignored():
    heard = {**DIRECT, "channel_type": "channel", "channel": "C1"}
    assert read_question(heard, "T1", "U0BOT") is None
    assert read_question({**heard, "text": "<@U0BOT> how?"}, "T1", "U0BOT")


def test_thread_is_one_conversation_of_its_workspace_and_channel():
    asked = [
        Asked(*place, "how?") for place in (("T1", "C1", "1", "1"), ("T1", "C1", "1", "2"), ("T2", "C1", "1", "1"))
    ]
    first, follow_up, elsewhere = asked
    assert first.conversation == follow_up.conversation != elsewhere.conversation
    assert len({one.id for one in asked}) == 3
    assert "C1" not in first.conversation
