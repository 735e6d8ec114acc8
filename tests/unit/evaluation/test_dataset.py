"""Data sets: read from JSONL or an array, with the line of every mistake, and split without a shared page."""

import json

import pytest

from pipelines.evaluation.dataset import (
    BadDataset,
    Example,
    count_left_out,
    dataset_fingerprint,
    name_datasets,
    read_answerable,
    read_dataset,
    read_datasets,
    read_questions,
    sample,
    write_dataset,
)

ROWS = [
    {"question": "How?", "source": "https://d.test/a.html#one", "answer": "So."},
    {"question": "Why?", "sources": ["https://d.test/b.html", "https://d.test/a.html#two"], "answer": ""},
]
EXAMPLES = [
    Example("How?", ("https://d.test/a.html#one",), "So."),
    Example("Why?", ("https://d.test/b.html", "https://d.test/a.html#two")),
]


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "set.jsonl"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_json_lines_and_a_json_array_are_the_same_data_set(file):
    lines = "\ufeff" + "\n\n".join(json.dumps(row) for row in ROWS) + "\r\n"
    assert read_dataset(file(lines)) == EXAMPLES
    assert read_dataset(file(json.dumps(ROWS, indent=2))) == EXAMPLES


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_spreadsheet_is_a_data_set(tmp_path, mark):
    cells = [
        ["Question ", "sources", "answer", "answerable", "note"],
        ["How?", "https://d.test/a.html#one", "So.", "", "x"],
        ["", "", "", "", "later"],
        ["Why?", '"https://d.test/b.html\nhttps://d.test/a.html#two"', "", "", ""],
        ["", "", "", "", ""],
        ['"Two\nlines, ""quoted""; an egg?"', "", "", "FALSE", ""],
    ]
    (tmp_path / "set.CSV").write_text("\ufeff" + "\r\n".join(mark.join(row) for row in cells), encoding="utf-8")
    egg = Example('Two\nlines, "quoted"; an egg?', ())
    assert read_dataset(tmp_path / "set.CSV") == [*EXAMPLES, egg]
    with pytest.raises(BadDataset, match="spreadsheet"):
        write_dataset(tmp_path / "set.CSV", EXAMPLES)
    assert len(read_dataset(tmp_path / "set.CSV")) == 3, "it is left as it was"
    write_dataset(tmp_path / "lines.csv", EXAMPLES)
    write_dataset(tmp_path / "lines.csv", EXAMPLES)
    assert read_dataset(tmp_path / "lines.csv") == EXAMPLES


@pytest.mark.parametrize("name", ["source", "sources"])
def test_source_is_a_string_or_a_list_under_either_name(file, name):
    for given, read in [
        ("u#a", ("u#a",)),
        (["u", " v#a ", "u"], ("u", "v#a")),
        ("u#", ("u",)),
        ("u#%C3%A4", ("u#%C3%A4", "u#ä")),
    ]:
        assert read_dataset(file(json.dumps({"question": "q", name: given, "more": 1})))[0].sources == read


def test_off_topic_question_says_so_and_has_no_source(file):
    (egg,) = read_dataset(file('{"question": "How long do I boil an egg?", "answerable": false, "source": null}'))
    assert egg == Example("How long do I boil an egg?", ()) and not egg.answerable
    assert all(example.answerable for example in EXAMPLES)
    with pytest.raises(BadDataset, match="give questions with a source"):
        read_answerable(file('{"question": "a", "answerable": false}'))
    both = file('{"question": "a", "answerable": false}\n{"question": "b", "source": "u", "answerable": true}')
    assert read_answerable(both) == [Example("b", ("u",))]


def test_several_files_form_one_data_set(tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, example in zip(paths, EXAMPLES, strict=True):
        write_dataset(path, [example])
    assert read_datasets([*paths, paths[0]]) == EXAMPLES and name_datasets(paths) == "a.jsonl + b.jsonl"


def test_written_data_set_reads_back_the_same(tmp_path):
    path = tmp_path / "out.jsonl"
    odd = Example("Zeile eins\nzwei \u2028 ?", ("https://d.test/ü.html",))
    examples = [*EXAMPLES, Example("About other things?", ()), odd]
    write_dataset(path, examples)
    assert read_dataset(path) == examples
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"question": "a", "source": "u"}\n{"question": "b", "source": }', 2, "not JSON"),
        ('{"question": "a", "source": "u"}\n\n["u"]', 3, "not an object"),
        ('{"source": "u"}', 1, "question is None"),
        ('{"question": "  ", "source": "u"}', 1, "question is '  '"),
        ('{"question": "a"}', 1, 'sources: name the page that answers it, or write "answerable": false'),
        ('{"question": "a", "source": null}', 1, "neither source nor sources"),
        ('{"question": "a", "answerable": true}', 1, "neither source nor sources"),
        ('{"question": "a", "answerable": "no", "source": "u"}', 1, "answerable is 'no': it must be true or false"),
        ('{"question": "a", "answerable": false, "source": "u"}', 1, "has source, and answerable is false"),
        ('{"question": "a", "source": "u", "sources": ["u"]}', 1, "source and sources"),
        ('{"question": "a", "source": "#anchor"}', 1, "'#anchor'"),
        ('{"question": "a", "source": ["u", 7]}', 1, "must name a page"),
        ('{"question": "a", "sources": []}', 1, "must name a page"),
        ('{"question": "a", "sources": {"u": 1}}', 1, "must name a page"),
        ('{"question": "a", "source": "u", "answer": 7}', 1, "answer is '7'"),
        ('[{"question": "a", "source": "u"},\n {"question": 3, "source": "u"}]', 2, "question is 3"),
        ('[{"question": "a", "source": "u"},\n\n {"question": "a" "source": "u"}]', 3, "not JSON"),
        (b'{"question": "a", "source": "u"}\n"\xff\xfe"', 2, "not UTF-8"),
        ('\n{"question": ' + "[" * 9_999, 2, "nested too deeply"),
    ],
)
def test_mistake_is_reported_with_its_line(file, text, line, words):
    path = file(text)
    with pytest.raises(BadDataset, match=rf"^{path}:{line}: ") as raised:
        read_dataset(path)
    assert words in str(raised.value)


def test_every_mistake_is_counted_and_the_first_ones_are_listed(file):
    path = file("\n".join(["{}", "nonsense"] * 15))
    with pytest.raises(BadDataset) as raised:
        read_dataset(path)
    assert [line for line, _ in raised.value.mistakes] == list(range(1, 31))
    assert str(raised.value).endswith("and 10 more mistakes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "no question") for text in ("", "\n \n", "[]")),
        *((text, "can't be read") for text in ("[" * 9_999, "[" + "9" * 9_999 + "]")),
    ],
)
def test_file_without_questions_or_in_an_unreadable_format_is_refused(file, text, words):
    with pytest.raises(BadDataset, match=words):
        read_dataset(file(text))


def test_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(BadDataset, match=r"absent\.jsonl.*No such file"):
        read_dataset(tmp_path / "absent.jsonl")


def test_id_and_fingerprint_cover_question_sources_and_answer():
    one, other = EXAMPLES[0], Example("How?", ("https://d.test/a.html#one",), "Otherwise.")
    assert one.id == Example(one.question, one.sources, one.answer).id
    assert len({one.id, other.id, EXAMPLES[1].id, Example(one.question, one.sources).id}) == 4
    assert dataset_fingerprint([one, other]) == dataset_fingerprint([one, other]) != dataset_fingerprint([other, one])


def test_sample_is_drawn_by_its_seed_and_keeps_the_order():
    examples = [Example(f"q{n:02}", ("u",)) for n in range(50)]
    drawn = sample(examples, 10, seed=3)
    assert len(drawn) == 10 and drawn == sorted(drawn, key=lambda e: e.question) == sample(examples, 10, seed=3)
    assert drawn != sample(examples, 10, seed=4) and drawn != examples[:10]
    assert sample(examples, 99) == examples


def test_only_rows_accepted_by_a_person_are_used(file):
    rows = [{"question": f"q{n}", "source": "u", **({"review": state} if state else {})}
            for n, state in enumerate(("", "accepted", "draft", "rejected"))]  # fmt: skip
    path = file("\n".join(map(json.dumps, rows)))
    assert [example.question for example in read_dataset(path)] == ["q0", "q1"]
    assert count_left_out([path, path]) == {"draft": 2, "rejected": 2}
    with pytest.raises(BadDataset, match="review is 'maybe': it must be draft, accepted or rejected"):
        read_dataset(file('{"question": "a", "source": "u", "review": "maybe"}'))


def test_wrong_sources_are_used_in_training_and_change_no_score(file):
    (example,) = read_dataset(file('{"question": "a", "source": "u", "negatives": ["v#a"]}'))
    assert example.negatives == ("v#a",) and example.id == Example("a", ("u",)).id
    with pytest.raises(BadDataset, match="negatives is"):
        read_dataset(file('{"question": "a", "source": "u", "negatives": "v"}'))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.txt", "Where are the logs?\n\n  What is a task?  \n"),
        ("log.jsonl", '{"question": "Where are the logs?", "target": 1}\n{"question": "What is a task?"}\n'),
        ("log.json", '[{"question": "Where are the logs?"},\n {"question": "What is a task?", "source": "u"}]'),
        ("log.csv", '\ufeffid,question\n1,"Where are the logs?"\n2,What is a task?\n3,\n'),
    ],
)
def test_questions_are_read_from_common_log_formats(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_questions(tmp_path / name) == ["Where are the logs?", "What is a task?"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "text\nx\n", "no column question"),
        ("a.jsonl", '{"question": 1}\n', "a.jsonl:1: question is 1"),
        ("a.txt", "\n \n", "no question"),
    ],
)
def test_file_without_questions_is_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadDataset, match=message):
        read_questions(tmp_path / name)
