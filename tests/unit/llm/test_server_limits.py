"""Servers' messages about their limits are understood in any provider's words."""

import pytest

from pipelines.llm.limits import is_about_length, seconds_to_wait, stated_limit

TOO_LONG = {
    # Bedrock, xAI, GitHub Models, Kimi, Groq
    "Input is too long for requested model.": None,
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.": 131072,
    "Request body too large for gpt-4o model. Max size: 8000 tokens.": 8000,
    "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)": 8192,
    "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8042, please reduce your "
    "message size and try again.": 6000,
    "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192": 8192,
    # Cohere, Mistral, text-generation-inference, Fireworks, OpenAI, llama.cpp
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.": 4081,
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length": 32768,
    "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens": 4097,
    "The prompt is too long: 9000, model maximum context length: 8191": 8191,
    "maximum context length is 65536 tokens. However, you requested 70000 tokens (69000 in the messages)": 65536,
    "Input tokens exceed the configured limit of 272,000 tokens. Your messages have 300,000 tokens.": 272_000,
    "the request exceeds the available context size, try increasing it": None,
    # Cloudflare, Vertex, Anthropic, DashScope, Zhipu, Databricks
    "The number of input and output tokens (9000) exceeded this model context window limit (8192).": 8192,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).": 1048576,
    "prompt is too long: 208310 tokens > 200000 maximum": 200000,
    "Range of input length should be [1, 30720]": 30720,
    "Prompt exceeds max length": None,
    "Input length 5000 exceeds model max seq length 4096": 4096,
}


@pytest.mark.parametrize(("message", "limit"), TOO_LONG.items())
def test_context_length_refusal_is_recognized_with_its_limit(message: str, limit: int | None) -> None:
    assert is_about_length(message, 400)
    assert stated_limit(message) == limit


@pytest.mark.parametrize(("message", "status"), [
    ("max_tokens is too large: 32768. This model supports at most 16384 completion tokens", 400),
    ("Invalid 'messages': array too long. Expected an array with maximum length 2048", 400),
    ("temperature must be at most 2", 400),
    ("Unsupported parameter: 'max_tokens' is not supported with this model.", 400),
    ("The provided JSON schema contains features not supported by xgrammar.", 400),
    ("model requires more system memory (5.6 GiB) than is available (3.0 GiB)", 500),
    ("Rate limit reached for tokens per minute (TPM): Limit 6000, Used 5900, Requested 800", 429),
])  # fmt: skip
def test_other_refusals_are_not_about_length(message: str, status: int) -> None:
    assert not is_about_length(message, status)


def test_too_large_body_is_recognized_by_its_status() -> None:
    assert is_about_length("<h1>Request Entity Too Large</h1>", 413)


@pytest.mark.parametrize(("message", "seconds"), [
    ('{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}', 34),
    ("Please try again in 1m12.5s. Need more tokens?", 72.5),
    ("Please try again in 350ms", 0.35),
    ("Please retry after 20 seconds.", 20),
    ('{"error": "busy", "retry_after": 2.5}', 2.5),
    ("You can retry in 2 minutes", 120),
    ("try again later", None),
    ("", None),
])  # fmt: skip
def test_retry_time_is_read_from_words_and_json(message: str, seconds: float | None) -> None:
    assert seconds_to_wait(message) == (pytest.approx(seconds) if seconds is not None else None)
