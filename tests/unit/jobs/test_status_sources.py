"""`raydex status` lists every source of a collection, and an error about one names the wrong setting."""

import pytest

from jobs.status import summary_of_sources
from pipelines.indexing.folders.folder import NoSuchFolder
from pipelines.indexing.sources.published import read_listing


def test_sources_of_other_kinds_are_listed_with_their_keys():
    settings = {
        "sites": [{"start_urls": ["https://x.org/"]}],
        "folders": [{"path": "/docs", "base_url": "https://y.org/"}],
        "sources": [{"kind": "notes", "path": "/notes", "tags": ["a", "b"]}, {"kind": "issues"}],
    }
    assert summary_of_sources(settings)[0].startswith("https://x.org/")
    assert summary_of_sources(settings)[1] == "/docs as https://y.org/"
    assert summary_of_sources(settings)[2:] == ["notes /notes (tags: a b)", "issues"]


def test_missing_or_foreign_sitemap_is_not_blamed_on_the_path(tmp_path):
    other = tmp_path / "sitemap.xml"
    other.write_text("<urlset><url><loc>https://z.org/a</loc></url></urlset>")
    for sitemap in (str(tmp_path / "none.xml"), str(other)):
        with pytest.raises(NoSuchFolder, match=r"sitemap '.*'") as error:
            read_listing(sitemap, "https://x.org/")
        assert error.value.key == "sitemap"
    assert NoSuchFolder.key == "path"
