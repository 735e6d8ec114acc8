"""Makes questions from headings and first sentences, without a model.

The questions are few and plain, but none is silly: where a form is not certain there is none. Knows English and the
style of documentation.
"""

import re
from collections.abc import Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Headings that name the kind of a section, not its subject.
GENERIC = _words("""
overview introduction intro example examples usage notes note parameters returns return raises attributes methods
summary conclusion faq faqs faq’s contents references reference changelog prerequisites requirements see also next
steps what's new more information details background motivation limitations api resources further reading additional
quickstart tutorial setup installation options advanced basics miscellaneous troubleshooting appendix known issues
""")

# Verbs that headings of documentation begin with and that are rarely nouns.
VERBS = _words("""
access activate add adjust aggregate allocate analyze apply assign attach autoscale avoid benchmark bind build cancel
choose clean clone collect combine compare compile compute configure connect convert copy create customize debug declare
define delete deploy detect develop disable display distribute download edit enable ensure evaluate execute export
expose extend extract fetch find fine-tune fix format generate get group handle hide implement import improve include
increase initialize inspect install integrate investigate invoke keep launch limit load locate log maintain make manage
mark measure merge migrate minimize modify monitor mount move obtain open optimize organize override package parallelize
parse partition pass perform persist prepare prevent preprocess print process profile provision publish pull push query
read receive record reduce refer register release reload remove rename repartition replace reproduce request reset
resize resolve restart restore restrict resume retrieve retry rotate run save scale schedule search secure select send
serialize serve set share shard show shuffle shut sort specify split start stop store stream submit switch sync
synchronize tail terminate test track train transform troubleshoot tune turn uninstall unpack update upgrade upload use
validate verify view visualize wait wrap write
""")
# Gerunds that stand before nouns as often: "training throughput" is no task.
NOUNS = _words("building loading logging processing profiling scheduling streaming testing tracking training")
# Words that are no names, even if a heading capitalizes them.
_SMALL = _words("""
a an and as at by for from how if in into is it my of on or out over started that the their them this to up using via
when with without you your
""")

# Verbs that are nouns as often: certain only before an article, "your" or a preposition.
DOUBTFUL = _words("""
access build cancel clone compute copy display download export format get group import limit load log make mark
measure monitor mount move package partition pass process profile pull push query read record release request reset
restart return run save scale schedule search secure set share shard show shuffle sort split start stop store stream
switch sync tail test track train transform tune turn update upgrade upload use view wait wrap clean find keep open
serve
""")
_CERTAIN = _words(
    "a an the your my multiple several custom another all each with on in from to up down out into as and for using"
)

# Words that point to something the reader of a question does not see.
_POINTING = re.compile(
    r"\b(?:this|these|those|it|its|that|above|below|following|here|previous|same|such|example|examples|section)\b", re.I
)
_ASKING = re.compile(
    r"^(?:what|how|why|when|where|which|who|can|does|do|is|are|should|will|could)\b.*", re.IGNORECASE | re.DOTALL
)
# Headings with a subtitle, code or an ellipsis, and a thing that nobody wants to do.
_UNFIT = re.compile(r"[:=;…]|\.\.|^run(?:ning)? out of\b", re.IGNORECASE)
_NUMBERING = re.compile(r"^(?:step\s+\d+\s*[:.)-]\s*|\d+(?:\.\d+)*[.):]?\s+|[a-z][.)]\s+)", re.IGNORECASE)
_DEFINED = re.compile(
    r"^(?P<article>an?\s+|the\s+)?(?P<subject>[\w`./+ -]{2,60}?)\s+(?P<verb>is|are)\s+(?:an?|the|one\s+of)\s+.+",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"^to\s+(?P<clause>[a-z][^,.;:]{8,80}?),\s+(?:you|use|call|set|run|first|pass|add|specify|see|we)\b", re.I
)
_ABLE = re.compile(
    r"^(?:you|users)\s+can\s+(?:also\s+)?use\s+[^.;:]{2,60}?\s+to\s+(?P<clause>[a-z][^,.;:()]{8,80})[.,;:(]", re.I
)

FEWEST, MOST = 3, 16  # words of a question: fewer are too vague, more are a sentence turned round
LEAST_TEXT = 80  # characters of a section that is worth a question


def heading_questions(title: str, headings: Sequence[str], text: str) -> list[str]:
    """Return the questions that a section answers, best first, from its `headings` and the `text` it begins with.

    `title` is that of its page; it is added where a heading alone is too vague.
    """
    if len(text) < LEAST_TEXT or not headings:
        return []
    heading, first = _clean(headings[-1]), _sentence(text)
    page = _clean(headings[0]) if len(headings) > 1 else ""
    found = [_from_heading(heading, page), _from_definition(heading, first), _from_purpose(first)]
    return [question for question in dict.fromkeys(filter(None, found)) if _sensible(question)]


def _clean(heading: str) -> str:
    bare = re.sub(r"[¶#]+\s*$|\(.*?(?:alpha|beta|experimental|optional|deprecated).*?\)|[`*]", "", heading, flags=re.I)
    return _NUMBERING.sub("", " ".join(bare.split())).strip(" :.-–—")


def _from_heading(heading: str, page: str) -> str:
    words = heading.split()
    if not words or len(words) > MOST or {word.lower() for word in words} <= GENERIC or _UNFIT.search(heading):
        return ""
    if _ASKING.match(heading):
        return _from_question(heading)
    verb, rest = _verb(words)
    if not verb or not rest or _POINTING.search(" ".join(rest)):
        return ""
    question = f"How do I {verb} {_object(rest)}"
    # "Configure logging" on the page "Ray Serve": a reader would ask which logging.
    vague = len(rest) < 2 and page and not _same_subject(page, question) and {w.lower() for w in page.split()} - GENERIC
    is_topic = bool(vague) and len(page.split()) <= 4 and not _verb(page.split())[0] and not _ASKING.match(page)
    return f"{question} in {page}?" if is_topic else f"{question}?"


def _from_question(heading: str) -> str:
    """Return a heading that is a question already; "" if it only begins like one ("What's next")."""
    words = heading.rstrip("?").split()
    start = [word.lower() for word in words[:2]]
    if _POINTING.search(heading) or len(words) < FEWEST:
        return ""
    if heading.endswith("?"):
        return heading
    if start == ["how", "to"] and words[2].lower() in VERBS:
        return f"How do I {' '.join([words[2].lower(), *words[3:]])}?"
    if start in (["when", "to"], ["where", "to"]) and words[2].lower() in VERBS:
        return f"{words[0].capitalize()} should I {' '.join([words[2].lower(), *words[3:]])}?"
    if start in (["what", "is"], ["what", "are"], ["how", "does"], ["how", "do"], ["why", "use"], ["why", "does"]):
        return f"{' '.join(words)}?"
    return ""


def _verb(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the verb that a heading begins with, in its base form, and the words after it; ("", []) without a verb."""
    first, rest = words[0].lower(), list(words[1:])
    if base := _base(first):
        certain = first not in NOUNS or (bool(rest) and rest[0].lower() in _CERTAIN)
        return (base, rest) if certain else ("", [])
    if first == "getting" and [word.lower() for word in rest[:1]] == ["started"] and len(rest) > 2:
        return "get", rest
    if first not in VERBS or not rest or words[0][1:] != first[1:]:
        return "", []
    certain = rest[0].lower() in _CERTAIN or (first not in DOUBTFUL)
    return (first, rest) if certain else ("", [])


def _object(rest: Sequence[str]) -> str:
    """Return the words after a heading's verb as in a sentence: small words and a second verb in lower case."""
    small = [word.lower() if word.lower() in _SMALL else word for word in rest]
    for at, word in enumerate(small[:-1]):
        if word in ("and", "or"):
            second = small[at + 1].lower()
            small[at + 1] = second if second in VERBS else _base(second) or small[at + 1]
    return " ".join(small)


def _base(gerund: str) -> str:
    """Return the base form of a gerund: configuring → configure, running → run; "" for nothing, string, ring."""
    if not gerund.endswith("ing"):
        return ""
    stem = gerund[: -len("ing")]
    forms = (stem + "e", stem, stem[:-1] if stem[-1:] == stem[-2:-1] else "")
    return next((form for form in forms if form in VERBS), "")


def _from_definition(heading: str, sentence: str) -> str:
    """Return "What is X?" where the first sentence defines the heading's X."""
    match = _DEFINED.match(sentence)
    if not match or not _same_subject(heading, match["subject"]) or _POINTING.search(match["subject"]):
        return ""
    subject = match["subject"].replace("`", "")
    if len(subject.split()) > 5 or {word.lower() for word in subject.split()} <= GENERIC:
        return ""
    return f"What {match['verb'].lower()} {(match['article'] or '').lower()}{subject}?"


def _from_purpose(sentence: str) -> str:
    """Return "How do I …?" from "To …, do this" and "You can use … to …"."""
    match = _PURPOSE.match(sentence) or _ABLE.match(sentence)
    if not match:
        return ""
    clause = match["clause"].replace("`", "").strip()
    words = clause.split()
    if words[0].lower() not in VERBS or len(words) < FEWEST or _POINTING.search(clause):
        return ""
    return f"How do I {' '.join([words[0].lower(), *words[1:]])}?"


def _same_subject(one: str, other: str) -> bool:
    """Return whether two names share their last word, plural or not, or one contains the other."""
    a, b = (re.sub(r"[^\w ]", " ", name.lower()).split() for name in (one, other))
    if not a or not b:
        return False
    return a[-1].rstrip("s") == b[-1].rstrip("s") or set(a) <= set(b)


def _sentence(text: str) -> str:
    """Return the first sentence, on one line."""
    line = " ".join(text.split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`\"(])", line, maxsplit=1)[0]


def _sensible(question: str) -> bool:
    words = question.split()
    letters = sum(sign.isalpha() or sign in " '’-?.`_" for sign in question)
    return FEWEST <= len(words) <= MOST and letters >= 0.85 * len(question) and question.count("?") == 1
