"""Builds the remarks that a client shows with an answer: its author, confidence and degradations.

`serve/web/chat/turn.js` does the same for the web page.
"""

from collections.abc import Mapping
from typing import Any

from pipelines.text.languages import ENGLISH, read_texts, say_beside

RESULTS = "results"  # the form of an answer that lists the best matches
SOME = "some"  # a confidence that tells nothing, so it is not shown
QUOTING = "extractive"  # the agent whose answers quote the documentation


def make_remarks(answer: Mapping[str, Any], language: str) -> list[str]:
    """Return the remarks on a reply of /query, in `language`."""
    claims, quoted = answer.get("claims") or {}, answer.get("agent") == QUOTING
    results = answer.get("form") == RESULTS and answer.get("known", True)
    lost = list(answer.get("degraded", ()))
    remarks = [say_beside("cut_off", language)] if "truncated" in lost else []
    if answer.get("written_by") == "person":
        remarks.append(say_beside("by_person", language))
    elif answer.get("known", True) and claims.get("total"):
        backed = say_beside("supported", language, supported=claims["supported"], n=claims["total"])
        backed = say_beside("quoted", language) if quoted else backed
        label = "" if answer["confidence"] == SOME else f"{say_beside(answer['confidence'], language)} · "
        remarks.append(label + backed)
    elif results:
        remarks.append(say_beside("search_results", language))
    return remarks + [_say_lost(part, language, quoted) for part in lost if part != "truncated"]


def _say_lost(part: str, language: str, quoted: bool) -> str:
    if part.startswith("llm:"):
        return say_beside("model_quoted" if quoted else "model_replaced", language)
    known = f"lost_{part}" in read_texts(ENGLISH)["page"]
    return say_beside(f"lost_{part}", language) if known else say_beside("lost", language, part=part)
