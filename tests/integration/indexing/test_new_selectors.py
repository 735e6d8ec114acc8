"""New selectors are applied to stored pages, and selectors without matches are reported."""

from kit.reindexing import Jobs
from kit.web import Site

MODEL = ("--no-ray", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")
SELECTORS = 'html: {content: ".doc", noise: [".rate", "#toc"], boxes: [".hint"]}'


def page(number: int) -> str:
    text = (
        f"<h2 id='t'>Topic {number}</h2><p>Words about topic {number}.</p><div class='hint'><p>Hint {number}.</p></div>"
    )
    rate = f"<div class='rate'>Rate text {number} from one to five.</div>" if number % 2 else ""
    links = "".join(f"<a href='/p{to}.html'>more</a>" for to in range(4))
    return f"<body><div class='doc'>{text}{rate}{links}</div></body>"


def test_new_selectors_reread_stored_pages_and_embed_only_changed_texts(jobs: Jobs, tmp_path):
    with Site({"/": page(9), **{f"/p{number}.html": page(number) for number in range(4)}}) as site:
        file = tmp_path / "docs.yaml"
        plain = f"sites: [{{start_urls: ['{site.url}/'], allow_private: true}}]\nindex: {{model: 'hash:64'}}\n"
        jobs.common = [file, *MODEL]
        file.write_text(plain)
        assert jobs.reindex().summary["warnings"] == []
        assert any("Rate text" in text for text in jobs.texts().values())
        fetched = len(site.paths())

        file.write_text(plain + SELECTORS)
        summary = jobs.reindex().summary
        assert len(site.paths()) == fetched
        assert summary["warnings"] == ["html.noise: '#toc' matches on none of 5 pages that were looked at"]
        texts = jobs.texts()
        assert not any("Rate text" in text for text in texts.values())
        assert len(texts) == 5
        assert summary["chunks"]["embedded"] == 3  # pages 1, 3 and 9 had something to rate

        file.write_text(plain + SELECTORS.replace(', "#toc"', ""))
        again = jobs.reindex().summary
        assert (again["warnings"], again["chunks"]["embedded"], len(site.paths())) == ([], 0, fetched)
