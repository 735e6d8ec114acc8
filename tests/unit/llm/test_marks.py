"""Thoughts, tags and endless repetitions in a reply are not part of the answer."""

import pytest

from pipelines.llm.marks import ReplyFilter

HARMONY = "<|channel|>analysis<|message|>1 or 2?<|end|><|start|>assistant<|channel|>final<|message|>2 [1].<|return|>"
REPLIES = [  # with the answer and the reason for stopping
    ("<think>\n1 or 2?\n</think>\n\n2 [1].\n", "2 [1].\n", ""),
    (" \n<think></think><thinking>1 or\n2?</thinking>  2", "2", ""),
    ("<think>cut off </thi", "", ""),
    ("[THINK]1 or 2?[/THINK]2", "2", ""),  # Mistral
    ("<seed:think>1 or 2?</seed:think>2", "2", ""),
    ("<|channel>thought\n1 or 2?<channel|>2", "2", ""),  # Gemma
    ("<|START_THINKING|>1?<|END_THINKING|><|START_RESPONSE|>2<|END_RESPONSE|>", "2", "stop"),  # Cohere
    (HARMONY, "2 [1].", "stop"),
    ("<|im_start|>assistant\n2.<|im_end|>\n<|im_start|>user\n3?", "2.", "stop"),  # ChatML
    ("2.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n3.", "2.", "stop"),  # Llama
    ("<start_of_turn>model\n2.<end_of_turn>\n", "2.", "stop"),
    ("<|assistant|>\n2.<|user|>\n3?", "2.", "stop"),
    ("<s>[/INST] 2.</s>[INST] 3? [/INST]", "2.", "stop"),
    ("<｜Assistant｜>2.<｜end▁of▁sentence｜>", "2.", "stop"),  # DeepSeek
    ("2.<|im_start|>", "2.", ""),
    ("\n <thin> a < b, <b>c</b> and f <| g |> h [1] [IN", "<thin> a < b, <b>c</b> and f <| g |> h [1] [IN", ""),
]


def read(text: str, size: int, prompt: str = "", thinks: bool = False, why: str = "") -> tuple[str, ReplyFilter]:
    reply = ReplyFilter(prompt, thinks)
    out = "".join(reply.feed(text[n : n + size]) for n in range(0, len(text), size))
    return out + reply.close(why), reply


@pytest.mark.parametrize(("text", "answer", "stopped"), REPLIES)
@pytest.mark.parametrize("size", [1, 3, 999])
def test_thoughts_and_tags_are_removed_while_streaming(text: str, answer: str, stopped: str, size: int) -> None:
    shown, reply = read(text, size)
    assert (shown, reply.text, reply.stopped) == (answer, answer, stopped)


@pytest.mark.parametrize("size", [1, 3, 999])
@pytest.mark.parametrize("text", [
    "End it by <|im_end|>.", "Run seq <start> to count.", "In RSS a <channel> has items.", "Split it at `</think>`.",
    "Use `<think>` for thoughts. Then stop.", "A <thinking> tag helps.", "```\n[INST]\n``` begins.",
    "`<s>a</s>` is struck, and so is <s>b</s>.", "Say `<|eot_id|>`.",
])  # fmt: skip
def test_tag_mentioned_in_an_answer_is_ordinary_text(text: str, size: int) -> None:
    shown, reply = read(f"<|im_start|>assistant\n{text}", size, prompt="… `<|IM_END|>` ends …")
    assert (shown, reply.stopped, reply.unopened) == (text, "", False)


@pytest.mark.parametrize(("text", "why", "answer", "thinks"), [
    ("1 or 2?\n</think>\n2", "stop", "2", True), ("2", "stop", "2", False), ("1 or", "length", "", False),
])  # fmt: skip
def test_thoughts_without_an_opening_tag_are_found_if_expected(text: str, why: str, answer: str, thinks: bool) -> None:
    shown, reply = read(text, 1, thinks=True, why=why)
    assert (shown, reply.unopened) == (answer, thinks)
    assert read("1 or 2?\n</think>\n2", 1)[1].unopened


@pytest.mark.parametrize("same", ["very ", "Use `ray.init` to start it. ", "- It starts.\n- It ends.\n" * 5])
def test_repeating_reply_is_stopped(same: str) -> None:
    shown, reply = read("Do it so: " + same * 400, 5)
    assert reply.stopped == "length" and len(shown) < max(1_300, 7 * len(same))
    listing = "".join(f"| {n} | `--flag-{n}` | no |\n" for n in range(99)) + same * 3 + "-" * 2_000
    assert not read(listing, 5)[1].stopped


@pytest.mark.parametrize("text", [
    "x<|" + "".join(f"a{n}" for n in range(900)), "x" + "<|" * 2_000, "x" + "".join(f"<a{n}_" for n in range(500)),
    "x" + "".join(f"<s>{n}</s>" for n in range(300)) + ".",
])  # fmt: skip
def test_unclosed_tag_is_text_in_any_split(text: str) -> None:
    for size in (1, 3, 2_500, 10_000):
        assert read(f"{text} end", size)[0] == f"{text} end"
