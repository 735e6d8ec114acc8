"""Example questions of a collection are natural questions about different subjects."""

import pytest

from pipelines.evaluation.questions.examples import SectionStart, choose_examples
from pipelines.evaluation.questions.headings import heading_questions
from pipelines.store.collections.outline import order_versions

MORE = " It takes a few minutes and needs no other software to be installed on your machine."


def section(heading, text, url="", page="Guide", links=0, language="") -> SectionStart:
    headings, url = (page, heading) if page else (heading,), url or f"https://d.test/{heading}"
    return SectionStart(url, page or heading, headings, f"{text}\n{MORE}", links, language)


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
def test_heading_becomes_a_natural_question(heading: str, text: str, question: str) -> None:
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
        ("Choosing between them", "You may choose between them."),
        ("What is not?", "Not this."), ("Settings", "Each setting is a variable of the environment."),
        ("Each setting", "Each setting is a variable."), ("Certificates", "Every certificate is a file."),
        ("Configuring each option", "To configure each option, set it."), ("Policies", "Most policies are a file."),
    ],
)  # fmt: skip
def test_heading_that_nobody_would_ask_becomes_no_question(heading: str, text: str) -> None:
    assert examples(section(heading, text)) == []


def test_most_linked_pages_and_guides_come_first() -> None:
    found = examples(
        section("Configuring certificate rotation", "Rotation.", "https://d.test/few", links=1),
        section("Configuring incremental backups", "Backups.", "https://d.test/many", links=90),
        section("Configuring exponential retries", "Retries.", "https://d.test/api/retries", links=1),
        section("Configuring storage quotas", "Quotas.", "https://d.test/release-notes", links=90),
    )
    assert found == [
        "How do I configure incremental backups?", "How do I configure certificate rotation?",
        "How do I configure exponential retries?", "How do I configure storage quotas?"
    ]  # fmt: skip


def test_examples_do_not_repeat_each_other() -> None:
    found = examples(
        section("Creating a trigger function", "Triggers.", links=9),
        section("Creating a trigger", "Triggers.", links=9), section("Restoring a backup", "Backups.", links=1), most=2
    )  # fmt: skip
    assert {"trigger" in question for question in found} == {True, False}


def test_page_with_the_whole_site_is_left_out() -> None:
    whole = [section(f"Configuring part {n} of logging", "Logging.", "https://d.test/print.html") for n in range(201)]
    assert examples(*whole) == []


def test_headings_are_used_verbatim_in_unsupported_languages() -> None:
    found = examples(
        section("Eine Sicherung erstellen", "Eine Sicherung.", language="de"),
        section("Überblick", "Ein Überblick.", language="de"),
    )
    assert found == ["Eine Sicherung erstellen"]


def test_collection_without_headings_has_no_examples() -> None:
    assert choose_examples([]) == [] and choose_examples([SectionStart("https://d.test/", "", (), "text")]) == []


def test_newest_versions_come_first() -> None:
    assert order_versions(["1.9", "1.10", "dev", "latest", "2.0rc1", "2.0", "v2.1-beta", "v2.1", "1.10.1"]) == [
        "latest", "v2.1", "v2.1-beta", "2.0", "2.0rc1", "1.10.1", "1.10", "1.9", "dev",
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------- the forms of headings

ABOUT = "x" * 100


@pytest.mark.parametrize(
    ("heading", "text", "question"),
    [
        ("Configuring the autoscaler", "", "How do I configure the autoscaler?"),
        ("Running a job with Docker¶", "", "How do I run a job with Docker?"),
        ("Step 2: Install the operator", "", "How do I install the operator?"),
        ("3.1 Set Up Your Cluster", "", "How do I set up your Cluster?"),
        ("Install and Configure the CLI", "", "How do I install and configure the CLI?"),
        ("Managing users and testers", "", "How do I manage users and testers?"),
        ("Saving and Loading models", "", "How do I save and load models?"),
        ("How to use `ray.init` twice", "", "How do I use ray.init twice?"),
        ("What is Ray Serve", "", "What is Ray Serve?"),
        ("Why are my tasks slow?", "", "Why are my tasks slow?"),
        ("When to use actors", "", "When should I use actors?"),
        ("Getting Started with Tune", "", "How do I get started with Tune?"),
        ("Placement groups", "Placement groups are a way to reserve bundles. ", "What are Placement groups?"),
        ("Ray Jobs", "A Ray job is a single application: all its tasks. ", "What is a Ray job?"),
    ],
)
def test_heading_or_first_sentence_becomes_a_question(heading, text, question):
    assert heading_questions(("Guide", heading), text + ABOUT)[:1] == [question]


SILLY = [
    "Overview", "Next steps", "Parameters", "See also", "Examples", "FAQ", "API", "Use cases", "Build status",
    "Release notes", "Test results", "Log files", "String", "Nothing new here", "Training throughput",
    "Compute instances", "What's next", "How does it compare to …", "Running this example", "Using it",
    "ray.data.Dataset.map", "num_cpus=1", "Deployment", "", "¶", "Running out of file descriptors",
    "Start here: train it", "Using A=1 twice",
]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        *[(heading, ABOUT) for heading in SILLY],
        ("Actors", "This is a class. " + ABOUT),
        ("Actors", "To do so, use the following. " + ABOUT),
        ("Scaling", "Deployments are the unit. " + ABOUT),
        ("Configuring the autoscaler", "Too short."),
    ],
)
def test_silly_question_is_not_generated(heading, text):
    assert heading_questions(("Guide", heading), text) == []
