"""The end of a brace in MDX is found after strings with escaped signs."""

import pytest

from pipelines.indexing.reading.formats.mdx import end_of_braces


@pytest.mark.parametrize("text", ['{"C:\\\\"}', "{'a\\\\'}", "{`a\\\\`}", '{"a\\"}"}', "{'a\\\\\\'}'}", "{a /* } */}"])
def test_escaped_backslash_does_not_escape_the_quote_after_it(text):
    assert end_of_braces(f"{text} after }}", 0) == len(text)
