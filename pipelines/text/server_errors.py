"""What a server says in an error of the `openai` client, which reads one form of replies alone."""


def message_of(error: Exception) -> str:
    """Return the message of `error`; with the server's whole reply if its message is not where OpenAI puts it."""
    said, response, code = str(error), getattr(error, "response", None), getattr(error, "code", None)
    if response is not None and response.text and " - " not in said:
        said = f"{said} - {' '.join(response.text.split())}"
    return f"{said} ({code})" if isinstance(code, str) else said
