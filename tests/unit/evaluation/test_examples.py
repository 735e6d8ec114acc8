"""Example questions of a collection: what a reader would ask, about different things, and nothing odd."""

import pytest

from pipelines.evaluation.questions.examples import SectionStart, choose_examples
from pipelines.store.collections.outline import order_versions

MORE = " It takes a few minutes and needs no other software to be installed on your machine."


def section(
    heading: str, text: str, url: str = "", page: str = "Guide", links: int = 0, language: str = ""
) -> SectionStart:
    headings = (page, heading) if page else (heading,)
    return SectionStart(
        url or f"https://d.test/{heading}", page or heading, headings, f"{text}\n{MORE}", links, language
    )


def examples(*sections: SectionStart, most: int = 6) -> list[str]:
    return [example.question for example in choose_examples(sections, most)]


@pytest.mark.parametrize(
    ("heading", "text", "question"),
    [
        ("Configuring TLS certificates", "Certificates are files.", "How do I configure TLS certificates?"),
        ("Configure TLS Certificates", "To configure certificates, …", "How do I configure TLS certificates?"),
        ("How to Rotate Certificates", "You may rotate certificates.", "How do I rotate certificates?"),
        ("CREATE INDEX", "CREATE INDEX — define a new index", "How do I define a new index?"),
        ("Draw a Circle", "You can draw a circle.", "How do I draw a circle?"),
        ("Drawing Circles", "It helps to draw the circles.", "How do I draw circles?"),
        ("Why is my widget blank?", "A widget is blank.", "Why is my widget blank?"),
        ("Logical Replication", "Logical replication is a method of copying.", "What is logical replication?"),
        ("Deploying on Kubernetes", "Kubernetes and kubectl, on Kubernetes.", "How do I deploy on Kubernetes?"),
    ],
)  # fmt: skip
def test_a_heading_becomes_what_a_reader_would_ask(heading: str, text: str, question: str) -> None:
    assert examples(section(heading, text)) == [question]


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("Introduction", "This is a guide."), ("Overview", "You can do much."), ("Parameters", "The parameters."),
        ("Aggregate Functions", "Aggregate functions compute one result."), ("Write-Ahead Log", "The log is written."),
        ("Running the tests", "To run the tests, call make."), ("Serving and Offline", "Offline."),
        ("read_csv", "read_csv is a function that reads."), ("What's new", "Much is new."),
        ("Upgrading to version 2.10", "To upgrade to version 2.10, do this."), ("Installing on demand", "On demand."),
        ("Configuring app.settings.TOKEN", "To configure app.settings.TOKEN, set it."),
        ("Improving our program", "We improve our program."),
    ],
)  # fmt: skip
def test_a_heading_that_nobody_would_ask_becomes_no_question(heading: str, text: str) -> None:
    assert examples(section(heading, text)) == []


def test_pages_that_many_link_to_and_guides_come_first() -> None:
    found = examples(
        section("Configuring certificate rotation", "Rotation.", "https://d.test/few", links=1),
        section("Configuring incremental backups", "Backups.", "https://d.test/many", links=90),
        section("Configuring exponential retries", "Retries.", "https://d.test/api/retries", links=1),
        section("Configuring storage quotas", "Quotas.", "https://d.test/release-notes", links=90),
    )
    assert found == [
        "How do I configure incremental backups?",
        "How do I configure certificate rotation?",
        "How do I configure exponential retries?",
        "How do I configure storage quotas?",
    ]


def test_examples_do_not_repeat_each_other() -> None:
    found = examples(
        section("Creating a trigger function", "Triggers.", links=9),
        section("Creating a trigger", "Triggers.", links=9),
        section("Restoring a backup", "Backups.", links=1),
        most=2,
    )
    assert {"trigger" in question for question in found} == {True, False}


def test_a_page_that_holds_the_whole_site_is_left_out() -> None:
    whole = [section(f"Configuring part {n} of logging", "Logging.", "https://d.test/print.html") for n in range(201)]
    assert examples(*whole) == []


def test_where_the_forms_of_a_language_are_not_known_its_headings_are_asked() -> None:
    found = examples(
        section("Eine Sicherung erstellen", "Eine Sicherung.", language="de"),
        section("Überblick", "Ein Überblick.", language="de"),
    )
    assert found == ["Eine Sicherung erstellen"]


def test_a_collection_without_headings_has_no_examples() -> None:
    assert choose_examples([]) == [] and choose_examples([SectionStart("https://d.test/", "", (), "text")]) == []


def test_versions_come_newest_first() -> None:
    assert order_versions(["1.9", "1.10", "dev", "latest", "2.0", "1.10.1"]) == [
        "latest", "2.0", "1.10.1", "1.10", "1.9", "dev",
    ]  # fmt: skip
