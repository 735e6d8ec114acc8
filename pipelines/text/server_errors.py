"""Extracts a server's error message from any response format; the `openai` client reads only one."""

from typing import Any

# Keys in which servers put the error message, most informative first.
_WORDS = ("message", "error_msg", "msg", "detail", "error", "title", "status_msg", "type")


def words_of(error: Any) -> str:
    """Return the message of an error that a server reports as JSON or text; "" if it has none."""
    if isinstance(error, dict):
        return next((words for name in _WORDS if (words := words_of(error.get(name)))), "")
    if isinstance(error, list):
        return words_of(error[0]) if error else ""
    return " ".join(error.split()) if isinstance(error, str) else ""


def message_of(error: Exception) -> str:
    """Return the message of `error`, with the server's whole reply if it does not follow OpenAI's error format."""
    said, response, code = str(error), getattr(error, "response", None), getattr(error, "code", None)
    if response is not None and response.text and " - " not in said:
        said = f"{said} - {' '.join(response.text.split())}"
    return f"{said} ({code})" if isinstance(code, str) else said
