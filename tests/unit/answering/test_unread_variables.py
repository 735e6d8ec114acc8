"""A variable RAYDEX_… that no code reads is reported with the probably intended one; other variables are not."""

import re
from pathlib import Path

from pipelines.answering.settings import AnswerSettings
from pipelines.answering.settings.variables import OTHERS, SERVICE, names_of, unread_variables
from serve.settings import Settings

ROOT = Path(__file__).parents[3]


def test_misspelled_variable_is_named_with_the_intended_one() -> None:
    meant = {
        "RAYDEX_RETREIVAL__K": "RAYDEX_RETRIEVAL__K",
        "RAYDEX_RETREIVAL_K": "RAYDEX_RETRIEVAL__K",
        "RAYDEX_RRF_K": "RAYDEX_RETRIEVAL__RRF_K",
        "RAYDEX_HOEM": "RAYDEX_HOME",
        "RAYDEX_LLM_MODLE": "RAYDEX_LLM__MODEL",
        "RAYDEX_PROT": "RAYDEX_PORT",
    }
    for given, name in meant.items():
        (line,) = unread_variables({given: "1"})
        assert line == f"{given} is set, but nothing reads it: did you mean {name}?"


def test_variables_in_use_are_not_reported() -> None:
    read = (
        *("RAYDEX_RETRIEVAL__K", "RAYDEX_RETRIEVAL_K", "raydex_retrieval__k", "RAYDEX_RETRIEVAL", "RAYDEX_PLACEMENT"),
        *("RAYDEX_HOME", "RAYDEX_DEBUG", "RAYDEX_PORT_8000_TCP", "PATH"),
    )
    assert not list(unread_variables(dict.fromkeys(read, "1")))


def test_list_includes_service_settings_and_variables_read_in_code() -> None:
    assert sorted(SERVICE) == sorted(set(names_of(Settings)) - set(names_of(AnswerSettings)))
    known = {name.replace(".", "_").upper() for name in (*names_of(Settings), *OTHERS)}
    code = [path.read_text() for part in ("pipelines", "serve", "jobs") for path in (ROOT / part).rglob("*.py")]
    named = {name for text in code for name in re.findall(r'"RAYDEX_([A-Z][A-Z_]*[A-Z])"', text)}
    assert named <= known and "SMTP_PASSWORD" in named
