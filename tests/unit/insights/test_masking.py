"""Personal data and secrets are masked in reports; the subjects of the documentation are not."""

import pytest
from kit.shapes import Filled, read_shapes

from pipelines.insights.masking import mask

MASKED = [
    ("mail me at jane.doe+docs@mail.example.com please", "mail me at [e-mail] please"),
    ("call +49 170 1234567 now", "call [phone] now"),
    ("ray start on 93.184.216.34 fails", "ray start on [address] fails"),
    ("curl http://[2606:2800:220:1:248:1893:25c8:1946]:80/", "curl http://[[address]]:80/"),
    ("key sk-proj-abcDEF0123456789 does not work", "key [key] does not work"),
    ("rdx_" + "a1B2" * 10 + "xyz", "[key]"),
    ("rds_" + "a1B2" * 10 + "xyz", "[key]"),
    ("ghp_" + "a1B2c3D4" * 5, "[key]"),
    ("AKIAIOSFODNN7EXAMPLE", "[key]"),
    ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [secret]"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF", "jwt [key]"),
    ("password=hunter22 is refused", "password=[secret] is refused"),
    ('my password is "correct horse"', "my password is [secret]"),
    ("export MY_API_KEY='zzz999'", "export MY_API_KEY=[secret]"),
    ("postgresql://jane:pw@db.example.com/x", "postgresql://[login]@db.example.com/x"),
    ("/home/jane/ray/train.py and C:\\Users\\Jane\\x", "/home/[user]/ray/train.py and C:\\Users\\[user]\\x"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[private key]"),
    ("5f4dcc3b5aa765d61d8327deb882cf99 is what?", "[key] is what?"),
]  # fmt: skip
KEPT = [
    "How do I set num_gpus=0.5 for a task?", "password is required: what does it mean?",
    "Does Ray 2.6.3 work with Python 3.11.4?", "ray start --address=192.168.1.5:6379",
    "Why 127.0.0.1 and ::1 and 10.0.0.1?", "What is std::vector<int>::iterator?",
    "ray.data.Dataset.map_batches(fn, batch_size=1024, compute=ActorPoolStrategy())",
    "object_store_memory=10_000_000_000 at 2026-01-31T12:30:45",
    "ray.rllib.algorithms.algorithm_config.AlgorithmConfig.multi_agent2", "How do I use @ray.remote decorators?",
    "token: str"
]  # fmt: skip


@pytest.mark.parametrize(("text", "masked"), MASKED)
def test_secrets_and_addresses_are_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("text", KEPT)
def test_questions_about_software_stay_unmasked(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("seed", range(3))
def test_keys_of_many_services_are_masked_in_the_sentences_that_hold_them(seed: int) -> None:
    forms = read_shapes("secrets", seed)
    assert len(forms) > 200 and [form.text for form in forms if form.leaks(mask(form.text))] == []


@pytest.mark.parametrize("seed", range(3))
def test_hashes_ids_versions_and_code_stay_unmasked(seed: int) -> None:
    forms = read_shapes("harmless", seed)
    assert len(forms) > 200 and [(form.text, mask(form.text)) for form in forms if mask(form.text) != form.text] == []


def test_mail_addresses_and_phone_numbers_of_many_forms_are_masked() -> None:
    assert [form.text for form in read_shapes("personal") if form.leaks(mask(form.text))] == []


def test_a_form_leaks_if_half_of_its_secret_is_left() -> None:
    form = Filled("x", "key abcdefghij", ("abcdefghij",))
    assert form.leaks(form.text) and form.leaks("cdefgh") and not form.leaks("key [key] defgh")


def test_hidden_value_does_not_take_the_rest_of_the_sentence_along() -> None:
    assert (
        mask("password=a1b2c3d4, why is it refused by the proxy?")
        == "password=[secret], why is it refused by the proxy?"
    )
    assert mask("node 1 of 4 has key a1B2c3D4e5F6g7H8; node 2 none") == "node 1 of 4 has key [key]; node 2 none"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "a@" * 50_000,
        "1." * 50_000,
        "://" * 30_000,
        "=:" * 50_000,
        "a-_" * 40_000,
        "token " * 16_000,
        "--key " * 16_000,
    ],
)
def test_no_text_is_slow(text: str) -> None:
    assert len(mask(text)) <= len(text) * 2
