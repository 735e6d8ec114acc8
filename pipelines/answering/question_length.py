"""Refuses a question that is too long to be one."""


class QuestionTooLong(ValueError):
    """A question has more characters than the engine takes."""


def check_length(question: str, most: int) -> None:
    """Raise QuestionTooLong if `question` has more than `most` characters."""
    if len(question) > most:
        raise QuestionTooLong(
            f"the question has {len(question):,} characters, and at most {most:,} are answered: shorten it"
        )
