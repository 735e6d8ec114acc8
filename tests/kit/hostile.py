"""Generates hostile texts of any length, and measures the CPU time that a reader takes for them.

Each shape makes some parser of Markdown, JSON or sentences read its text repeatedly. A time is the minimum CPU time of
a few runs; a run that exceeds its limit is killed. Function calls are counted too, because other work on the machine
does not change their number.
"""

import contextlib
import gc
import itertools
import math
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Shape = Callable[[int], str]
Reader = Callable[[str], object]

LENGTHS = (2_000, 8_000, 32_000, 128_000)
MOST_S, MOST_GROWTH = 1.0, 1.2  # at the greatest length; exponent of the length in the growth of the time
PATTERN_GROWTH = 1.5  # of a pattern on a busy machine
TELLING_S = 0.04  # growth of smaller times is noise
TOLD_AT, TOLD_S = 8_000, 0.0005  # a faster reader does not read such a long text repeatedly: that takes milliseconds
MOST_BYTES = 4 << 30  # of memory that a reader may use


def repeated(unit: str, begin: str = "", end: str = "") -> Shape:
    """Return a shape that repeats `unit` between a beginning and an end."""

    def make(length: int) -> str:
        times = max(1, (length - len(begin) - len(end)) // len(unit))
        return f"{begin}{unit * times}{end}"

    return make


def numbered(line: str) -> Shape:
    """Return a shape of lines with a different number each in place of `{n}`."""

    def make(length: int) -> str:
        return "".join(line.format(n=n) for n in range(max(1, length // len(line.format(n=10_000)))))

    return make


def nested(opens: str, inner: str, closes: str) -> Shape:
    """Return a shape of nested brackets."""

    def make(length: int) -> str:
        depth = max(1, (length - len(inner)) // len(opens + closes))
        return f"{opens * depth}{inner}{closes * depth}"

    return make


def deeper(line: str, indent: str = "  ", most: int = 400) -> Shape:
    """Return a shape of lines with growing indentation, up to `most` levels."""

    def make(length: int) -> str:
        lines: list[str] = []
        size = 0
        while size < length:
            lines.append(f"{indent * (len(lines) % most)}{line}\n")
            size += len(lines[-1])
        return "".join(lines)[:length]

    return make


def table(head: str, row: str, columns: int = 5) -> Shape:
    """Return a shape of a table with a fifth of the length in its header, and rows with one cell."""

    def make(length: int) -> str:
        wide = max(2, length // (columns * len(head + "|-|")))
        return f"{head}{'|a' * wide}\n{'|-' * (wide + 1)}\n{row * max(1, length // (2 * len(row)))}"

    return make


REFUSALS = (
    "I do not know", "Ich weiß es nicht", "Je ne sais pas", "No lo sé", "Não sei", "Non lo so", "Ik weet het niet",
    "Nie wiem", "Я не знаю", "我不知道", "わかりません", "모르겠습니다",
)  # fmt: skip

SHAPES: Mapping[str, Shape] = {
    # Words and sentences
    "one word": repeated("a"),
    "one word behind a space": repeated("a", "x "),
    "spaces": repeated(" ", "x", "x"),
    "a. and spaces": repeated(" ", "a.", "x"),
    "< and spaces": repeated(" ", "<", "x"),
    "lines": repeated("\n", "x", "x"),
    "spaces and lines": repeated(" \n", "x", "x"),
    "sentences of a letter": repeated("A. "),
    "abbreviations": repeated("e.g. "),
    "abbreviated names": repeated("e.g. A "),
    "stops": repeated("."),
    "stops in quotes": repeated('."'),
    "closing quotes": repeated('"', "A."),
    "questions": repeated("? "),
    "full-width stops": repeated("。"),
    "colons": repeated(": "),
    "dashes": repeated("-"),
    "dashes and spaces": repeated("- "),
    "sorry, but": repeated("sorry, but ", end="x."),
    "however": repeated("however, ", end="x."),
    "based on": repeated("based on a, ", end="x."),
    "the passages that are given": repeated("the given ", end="x."),
    "the passages do not": repeated("directly ", "the passages do not ", "x."),
    "is not": repeated("is not ", "it "),
    "is not mentioned": repeated("is not mentioned ", "it ", "x"),
    "the answer": repeated("the answer ", end="x."),
    "no information": repeated("no a information ", end="x"),
    "refusals": repeated("I do not know. "),
    "refusals in twelve languages": repeated(". ".join(REFUSALS) + ". "),
    "a beginning of refusals": repeated("i ", "", "x"),
    "can you show": repeated("can you show me "),
    "zero-width": repeated("\u200b", "x", "x"),
    "joiners": repeated("a\u200d"),
    "combining marks": repeated("\u0301", "a"),
    "Chinese": repeated("中文"),
    "Thai": repeated("ก"),
    "surrogates": repeated("\ud800"),
    "emoji": repeated("\U0001f468\u200d\U0001f469"),
    "capitals and dots": repeated("A."),
    "words with dots": repeated("a.b"),
    "camel case": repeated("aB"),
    "digits": repeated("1"),
    "digits and commas": repeated("1,"),
    "numbers": numbered("{n} "),
    "apostrophes": repeated("'"),
    "hyphened": repeated("a-"),
    "underscores": repeated("_"),
    "words and underscores": repeated("a_"),
    "slashes": repeated("/"),
    "backslashes": repeated("\\"),
    "at signs": repeated("a@"),
    "e-mail addresses": repeated("a@b.c "),
    "commas": repeated(", "),
    # Citations and brackets
    "citations": repeated("[1]"),
    "citations and spaces": repeated("[1] "),
    "citations of a line": repeated("[1]", "a.\n\n"),
    "citations and lines": repeated("[1]\n"),
    "many citations": numbered("[{n}]"),
    "a citation of many": repeated("1, ", "[", "1]"),
    "a citation that never ends": repeated("1, ", "["),
    "citations of long ranges": repeated("[1-9999] "),
    "links of citations": repeated("[1](a) "),
    "opening brackets": repeated("["),
    "brackets in brackets": nested("[", "a", "]"),
    "links in links": nested("[", "a", "](b)"),
    "images in images": nested("![", "a", "](b)"),
    "unended images": repeated("!["),
    "closing targets": repeated("]("),
    "unended links": repeated("[a]("),
    "unended angle links": repeated("[a](<b"),
    "parentheses": nested("(", "a", ")"),
    "a target of parentheses": repeated("(", "[a]("),
    "link titles": repeated('[a](b "'),
    "definitions": numbered("[a{n}]: b\n"),
    "unended definitions": repeated("[a]: "),
    "references": repeated("[a][b]"),
    "definitions and references": numbered("[a{n}]: b\n\n[a{n}]\n\n"),
    "full-width brackets": repeated("【1】"),
    "opening full-width brackets": repeated("【"),
    # Emphasis and code
    "stars": repeated("*"),
    "stars and letters": repeated("*a "),
    "stars around letters": repeated("*a**a "),
    "stars and underscores": repeated("*a_"),
    "opening emphasis": repeated("a**b"),
    "emphasis in emphasis": nested("*a ", "b", "* "),
    "tildes": repeated("~"),
    "strikes": repeated("~~a "),
    "strikes around": repeated("a~~b"),
    "backticks": repeated("`"),
    "backticks and letters": repeated("`a"),
    "runs of backticks": numbered("`" * 3 + "{n}"),
    "longer runs of backticks": lambda length: "".join("`" * n + " " for n in range(1, max(2, math.isqrt(2 * length)))),
    "longer runs, twice": lambda length: "".join("`" * n + "a" for n in range(1, max(2, math.isqrt(length)))) * 2,
    "escaped backticks": repeated("\\`"),
    "called names": repeated("`a(", "", ""),
    # Blocks
    "pipes": repeated("|"),
    "pipes and lines": repeated("|\n"),
    "a table": repeated("| a | b |\n", "| a | b |\n| --- | --- |\n"),
    "a wide table with a tag": table("<b>", "x\n"),
    "a wide table": table("a", "|x\n"),
    "a wide table and no rows": lambda length: f"{'|a' * (length // 4)}|\n{'|-' * (length // 4)}|\n",
    "a table with a long cell": lambda length: f"|{'a' * (length // 2)}|\n|-|\n" + "|b|\n" * (length // 8),
    "table heads": repeated("|a|\n|-|\n"),
    "a table in a list": repeated("  | a | b |\n", "- | a | b |\n  | - | - |\n"),
    "table rules": repeated("-|", "a|b\n"),
    "quotes": repeated("> ", end="a"),
    "quotes without spaces": repeated(">"),
    "quoted lines": repeated("> a\n"),
    "quoted code": repeated("> ```\n"),
    "lazy quotes": repeated("> a\nb\n"),
    "a list": repeated("- a\n"),
    "a list with code at its end": lambda length: f"{'- a' + chr(10)}" * (length // 4) + "- ```\n  x\n",
    "a list with code in it": lambda length: "- a\n" * (length // 8) + "  ```\n" + "  x\n" * (length // 8),
    "a list with code in each": repeated("- a\n  ```\n  x\n  ```\n"),
    "a list with a tag": repeated("- a <b>\n"),
    "a list of a line": repeated("- ", end="a"),
    "numbered items": numbered("{n}. a\n"),
    "loose items": repeated("- a\n\n"),
    "empty items": repeated("-\n"),
    "lists of a line": repeated("- - a\n"),
    "numbered lists of a line": repeated("1. 1. a\n"),
    "lists in lists": deeper("- a"),
    "deep lists in lists": deeper("- a", most=10_000),
    "quotes in lists": repeated("- > ", end="a"),
    "stars that are items": repeated("* ", end="a"),
    "items that are code": repeated("-     a\n"),
    "lazy items": repeated("a\n", "- a\n"),
    "headings": repeated("# a\n"),
    "heading signs": repeated("#"),
    "heading signs with spaces": repeated("# "),
    "underlined": repeated("a\n-\n"),
    "underlines": repeated("=\n", "a\n"),
    "rules": repeated("---\n"),
    "indented code": repeated("    a\n"),
    "fences": repeated("```\n"),
    "unended code": repeated("a\n", "```\n"),
    "unended code in a line": repeated("a", "```\n"),
    "fences with names": repeated("```a\n"),
    "fences of tildes": repeated("~~~a\n"),
    "backticks of a fence": repeated("`a", "```"),
    "paragraphs": repeated("a\n\n"),
    "lines of a paragraph": repeated("a\n"),
    "paragraphs that are images": repeated("![](a.png)\n\n"),
    "paragraphs that are links": repeated("[a](b.html).\n\n"),
    "hard breaks": repeated("a\\\n"),
    "carriage returns": repeated("\r"),
    "carriage returns and letters": repeated("a\r"),
    "line separators": repeated("\u2028"),
    # HTML and entities
    "opening tags": repeated("<"),
    "tags": repeated("<b>"),
    "unended tags": repeated("<a "),
    "attributes": repeated(" a=b", "<a"),
    "unended attributes": repeated("<a b='"),
    "quoted attributes": repeated("'\"", "<a b="),
    "closing tags": repeated("</a>"),
    "comments": repeated("<!-- "),
    "comments of dashes": repeated("-", "<!-"),
    "CDATA": repeated("<![CDATA["),
    "instructions": repeated("<?"),
    "declarations": repeated("<!A "),
    "HTML blocks": repeated("<div>\n"),
    "HTML in a list": repeated("- <div>\n"),
    "autolinks": repeated("<a:b>"),
    "unended autolinks": repeated("<http://a"),
    "entities": repeated("&#"),
    "named entities": repeated("&a"),
    "amps": repeated("&amp;"),
    "thoughts": repeated("<think>"),
    "thoughts and ends": repeated("<think>a</think>"),
    "ends of thoughts": repeated("</think>"),
    "marks of turns": repeated("<|im_start|>"),
    "unended marks": repeated("<|"),
    "marks of the end": repeated("<|a"),
    "marks with long names": repeated("a", "<|"),
    "words that are marks": repeated("x<s>"),
    # URLs
    "schemes": repeated("http:"),
    "URLs": repeated("http://a.b "),
    "a URL of URLs": repeated("http://a.b"),
    "a long URL": repeated("a", "http://a.b/"),
    "a long URL that is cited": repeated("a/", "see http://a.b/", "[1]"),
    "slashes twice": repeated("//a"),
    "www": repeated("www."),
    "data": repeated("data:"),
    "data and types": repeated("data:a/"),
    "mentions": repeated("@here "),
    "entities of Slack": repeated("<@"),
    # JSON and lists of replies
    "opening braces": repeated("{"),
    "braces in braces": nested('{"a":', "1", "}"),
    "lists in JSON": nested("[", "1", "]"),
    "objects": repeated('{"answer": "a"} '),
    "objects that never end": repeated('{"answer": "a" '),
    "objects with scores": repeated('{"score": 3} '),
    "an object with keys": repeated('"answer": ', "{"),
    "unended strings": repeated('{"a": "'),
    "quotation marks": repeated('"', "{"),
    "a JSON list": lambda length: "[" + '"a", ' * (length // 5) + '"a"]',
    "a JSON list that never ends": repeated('"a", ', "["),
    "a JSON list of numbers": repeated("1,", "["),
    "escapes in JSON": repeated("\\", '{"answer": "'),
    "escaped quotes in JSON": repeated('\\"', '{"answer": "'),
    "comments in JSON": repeated("/*", "{"),
    "keys without values": repeated("a:", "{"),
    "scores": repeated("Score: 4/5 "),
    "score signs": repeated("*", "score"),
    "stars and scores": repeated("*", end="score"),
    "labelled questions": repeated("Q: "),
    "question lines": repeated("Question 1: a b c?\n"),
    "answer lines": repeated("answer "),
    "labels": repeated("follow-up "),
    "blank lines": repeated(" \t\n"),
    "blank lines before a fence": repeated("\n", end="```"),
    # Pages in HTML
    "paragraphs of HTML": repeated("<p>a"),
    "parts in parts": nested("<div>", "a", "</div>"),
    "lists of HTML": repeated("<ul><li>a"),
    "items of HTML": repeated("<li>a", "<ul>"),
    "terms of HTML": repeated("<dt>a<dd>b", "<dl>"),
    "cells of HTML": repeated("<td>a", "<table><tr>"),
    "rows of HTML": repeated("<tr><td>a<td>b", "<table>"),
    "tables in tables": repeated("<table><tr><td>"),
    "headings of HTML": numbered('<h2 id="a{n}">a</h2>'),
    "links of HTML": repeated('<a href="#a">a</a> '),
    "code of HTML": repeated("<code>a</code>"),
    "listings of HTML": repeated("<pre>a</pre>"),
    "lines of a listing": repeated("<span>a</span>\n", "<pre>"),
    "spans in spans": repeated("<span>a", "<pre>"),
    "folded parts": repeated("<details><summary>a</summary>b</details>"),
    "formulas of HTML": repeated("<math><mi>a</mi></math>"),
    "line breaks of HTML": repeated("a<br>"),
    # Pages in reStructuredText
    "sections of RST": numbered("a{n}\n======\n\n"),
    "directives": repeated(".. note:: a\n\n"),
    "directives in directives": deeper(".. note::\n", "   ", 20),
    "roles": repeated(":ref:`a` "),
    "substitutions": repeated("|a| "),
    "targets": numbered(".. _a{n}:\n\n"),
    "literal blocks": repeated("a::\n\n  b\n\n"),
    "footnotes": repeated("[#]_ "),
    "references of RST": repeated("`a`_ "),
    "fields": repeated(":a: b\n"),
    "line blocks": repeated("| a\n"),
    "grids": repeated("+-+-+\n|a|b|\n", end="+-+-+\n"),
    "simple tables": repeated("a  b\n", "=  =\n", "=  =\n"),
    # Pages in AsciiDoc
    "titles of AsciiDoc": repeated("== a\n\n"),
    "attributes of AsciiDoc": numbered(":a{n}: b\n"),
    "uses of an attribute": repeated("{a} ", ":a: b\n\n"),
    "macros": repeated("a::b[c]\n"),
    "conditions": repeated("ifdef::a[]\n"),
    "tables of AsciiDoc": repeated("|===\n|a\n|===\n"),
    "cells of AsciiDoc": repeated("|a ", "|===\n"),
    "listings of AsciiDoc": repeated("----\n"),
    "continued items": repeated("* a\n+\nb\n"),
    "callouts": repeated("a <1>\n", "----\n"),
    "passed through": repeated("+++a"),
    "anchors of AsciiDoc": repeated("[[a]]"),
    "terms of AsciiDoc": repeated("a:: b\n"),
    # Templates and dialects of Markdown
    "braces of templates": repeated("{{"),
    "shortcodes": repeated("{{< a >}}"),
    "tags of templates": repeated("{% a %}"),
    "unended tags of templates": repeated("{% a "),
    "unended expressions": repeated("${a"),
    "admonitions": repeated("!!! note\n    a\n"),
    "containers": repeated(":::note\n"),
    "tabs of MkDocs": repeated('=== "a"\n    b\n'),
    "links of a wiki": repeated("[[a|b]] "),
    "formulas": repeated("$a$ "),
    "formulas that never end": repeated("$a_ "),
    "attributes of Markdown": repeated("a {: .b}\n"),
    "components": repeated("<A b={c}>"),
    "imports": repeated('import a from "b"\n'),
    "comments of MDX": repeated("{/* "),
}

# One of each kind, which the tests try and the table in benchmarks/results/hostile-texts.md shows.
THIRTY: Mapping[str, Shape] = {
    title: SHAPES[title]
    for title in (
        "one word", "spaces", "lines", "sentences of a letter", "stops", "dashes", "sorry, but", "refusals",
        "combining marks", "Chinese", "digits", "citations", "opening brackets", "links in links", "unended links",
        "definitions and references", "stars around letters", "backticks and letters", "runs of backticks",
        "a wide table with a tag", "table heads", "quotes", "a list with code at its end", "lists in lists",
        "unended code", "paragraphs", "tags", "comments", "URLs", "braces in braces",
    )
}  # fmt: skip


def in_deltas(feed: Callable[[str], object], close: Callable[[], object], size: int) -> Reader:
    """Return a reader that receives a text in deltas of `size` characters, or all at once for 0."""

    def read(text: str) -> None:
        for at in range(0, len(text), size or len(text) or 1):
            feed(text[at : at + (size or len(text))])
        close()

    return read


@dataclass(frozen=True, slots=True)
class Timed:
    """The CPU seconds that a reader takes, by text length, or None for a length at which it was killed."""

    seconds: Mapping[int, float | None]
    error: str = ""

    @property
    def growth(self) -> float:
        """The exponent of the time's growth with the length, or 0 if even the longest time is too short to tell."""
        told = [(length, took) for length, took in self.seconds.items() if took is not None]
        if len(told) < len(self.seconds):
            return math.inf
        if len(told) < 2 or told[-1][1] < TELLING_S:
            return 0.0
        long, after = told[-1]
        # The range is wide: caches, other work and one-time work change the time by half.
        short, before = next((one for one in reversed(told) if one[0] * 16 <= long), told[0])
        return math.log(after / max(before, 1e-4)) / math.log(long / short)

    @property
    def is_fault(self) -> bool:
        """Return whether the reader failed, took too long, or grew too fast."""
        return bool(self.error) or self.longest > MOST_S or self.growth > MOST_GROWTH

    @property
    def longest(self) -> float:
        """The seconds at the greatest length, infinite if it was killed there."""
        return max((math.inf if took is None else took for took in self.seconds.values()), default=math.inf)


def calls_of(read: Reader, text: str) -> int:
    """Return the number of function calls while a text is read, including calls in C libraries."""
    count = itertools.count()
    before = sys.getprofile()
    threading.setprofile(lambda *_: next(count))
    sys.setprofile(lambda *_: next(count))
    try:
        read(text)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
    return next(count)


def too_slow(read: Reader, shapes: Mapping[str, Shape], length: int, limit_s: float) -> list[str]:
    """Return the shapes for which a pattern takes `limit_s` CPU seconds, and more than in proportion to the length.

    `re` checks for signals while it runs.
    """

    class Slow(Exception): ...

    def stop(*_: object) -> None:
        raise Slow

    def is_slow(text: str, limit_s: float) -> bool:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
            read(text)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)  # within `try`, because it may ring until it is stopped
        except Slow:
            return True
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return False

    def grows(shape: Shape) -> bool:
        short, fourth = shape(length // 4), math.inf
        for _ in range(3):
            began = time.process_time()
            if is_slow(short, limit_s):
                return True
            fourth = min(fourth, time.process_time() - began)
        return is_slow(shape(length), max(limit_s, fourth * 4**PATTERN_GROWTH))

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        return [title for title, shape in shapes.items() if is_slow(shape(length), limit_s) and grows(shape)]
    finally:
        signal.signal(signal.SIGVTALRM, before)


def timed(
    read: Reader,
    shapes: Mapping[str, Shape] = SHAPES,
    lengths: Sequence[int] = LENGTHS,
    limit_s: float = 10.0,
    runs: int = 3,
) -> dict[str, Timed]:
    """Return a reader's times by shape, measured in forks of this process.

    A fork that takes `limit_s` CPU seconds for a text is killed. Apparent faults are measured again, as the minimum of
    `runs`.
    """
    found = _timed_once(read, shapes, lengths, limit_s, 1)
    again = {title: shapes[title] for title, row in found.items() if row.is_fault and not math.isinf(row.longest)}
    return found | (_timed_once(read, again, lengths, limit_s, runs) if again and runs > 1 else {})


def _timed_once(
    read: Reader, shapes: Mapping[str, Shape], lengths: Sequence[int], limit_s: float, runs: int
) -> dict[str, Timed]:
    found: dict[str, dict[int, float | None]] = {title: dict.fromkeys(lengths) for title in shapes}
    errors: dict[str, str] = {}
    left = list(shapes)
    while left:
        rows = _of_a_copy(read, [(title, shapes[title]) for title in left], lengths, limit_s, runs)
        for title, length, seconds, error in rows:
            if seconds < 0:
                del found[title][length]
            elif error:
                errors[title] = error
            else:
                found[title][length] = seconds
        left = left[len(rows) // len(lengths) + 1 :]  # without the row whose text killed the fork
    return {title: Timed(found[title], errors.get(title, "")) for title in shapes}


def _of_a_copy(
    read: Reader, shapes: Sequence[tuple[str, Shape]], lengths: Sequence[int], limit_s: float, runs: int
) -> list[tuple[str, int, float, str]]:
    """Return title, length, seconds and error of everything that a fork of this process measured before it ended."""
    source, sink = os.pipe()
    if not (child := os.fork()):
        os.close(source)
        _measure(read, shapes, lengths, limit_s, runs, sink)
    os.close(sink)
    with os.fdopen(source, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    os.waitpid(child, 0)
    return [(title, int(length), float(seconds), error) for title, length, seconds, error in rows]


def _measure(
    read: Reader, shapes: Iterable[tuple[str, Shape]], lengths: Sequence[int], limit_s: float, runs: int, sink: int
) -> None:
    """Write title, length, seconds and error of each text to `sink`, and end this process."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    with contextlib.suppress(Exception):
        read("A word.")  # imports and first-use work do not count as reading time
    gc.collect()
    gc.freeze()
    try:
        for (title, shape), length in itertools.product(shapes, lengths):
            if length == lengths[0]:
                took = dict[int, float]()
            if any(short >= TOLD_AT and took[short] < TOLD_S for short in took):
                os.write(sink, f"{title}\t{length}\t-1\t\n".encode())
                continue
            signal.setitimer(signal.ITIMER_PROF, limit_s)
            text, least, error = shape(length), math.inf, ""
            try:
                for _ in range(runs):
                    began = time.process_time()
                    read(text)
                    least = min(least, time.process_time() - began)
                    if least < TELLING_S / 4 or least > 2 * MOST_S:
                        break
            except Exception as failed:
                least, error = 0.0, f"{type(failed).__name__}: {str(failed)[:200]!r}"
            took[length] = math.inf if error else least
            os.write(sink, f"{title}\t{length}\t{max(least, 1e-6):.6f}\t{error}\n".encode())
    finally:
        os._exit(0)
