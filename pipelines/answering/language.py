"""Tells a question in another language than English, and the embedding models that read only English.

Knows scripts, function words and names of models. It claims a language only where it is certain: a short question in
English, with code or names of any language in it, is never taken for another one.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

# Function words that are neither English words nor usual names in code, by language (BCP 47).
_FUNCTION_WORDS = {
    "de": "der das ich ist nicht ein eine einen einem einer eines und wie wo warum welche welcher welches kann für"
    " auf zu von dem wird werden sind auch bei nach über aus oder wenn gibt mache macht erstelle"
    " erstellen lesen schreiben löschen datei tabelle datenbank bitte",
    "fr": "le la les un une des du est que qui quoi pour dans sur avec je tu nous vous ce cette ces mon mes pas"
    " quel quelle quels quelles où et au aux faire peut peux sont puis"
    " comment lire écrire créer utiliser fichier",
    "es": "el la los las un una unos es que qué cómo como para por con en del se puedo puede hacer hay cuál"
    " cuáles dónde cuándo mi su está leer crear usar archivo tabla",
    "pt": "um uma os é que como para por com em da dos das se posso pode fazer qual quais onde quando não"
    " está são ler criar usar arquivo tabela",
    "it": "il lo la gli le un una è che per con di da del della nel nella su sono posso puoi fare quale quali"
    " dove quando non si faccio cosa leggere scrivere creare usare tabella",
    "nl": "de het een ik je hoe wat waar kunnen maak met voor op niet en zijn wordt naar welke kan maken lezen bestand",
    "sv": "jag hur är och ett det som på för med till inte vad kan varför",
    "da": "jeg hvordan er og et det som på for med til ikke hvad kan hvorfor",
    "no": "jeg hvordan er og et det som på for med til ikke hva kan hvorfor",
    "pl": "jak jest nie się na co czy dla mogę można który gdzie jaki z w",
    "cs": "jak je na se pro co kde mohu jaký",
    "tr": "nasıl bir ve için nedir mı ne ile bu nerede",
    "ro": "cum un este în pe pentru cu ce care",
    "hu": "hogyan egy az és van lehet mi hol",
    "fi": "miten ja voi mikä kuinka missä voin",
    "id": "bagaimana cara apa yang di untuk dengan dan ini saya",
    "vi": "làm thế nào để có là một của",
}
# Languages by the names of their scripts in Unicode, the telling ones first: Japanese is written with kana and Han.
_SCRIPTS = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh", "CYRILLIC": "ru", "ARABIC": "ar", "HEBREW": "he",
    "GREEK": "el", "THAI": "th", "DEVANAGARI": "hi",
}  # fmt: skip
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES.setdefault(_word, []).append(_language)
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        "the a an of to in is are how do does did what why can i my with for on from and or it this that which where"
        " when use using be not if should would could there was were you your we as at by has have will",
    )
)
# The share of letters in another script from which on a question is in that script's language.
_OTHER_SCRIPT = 0.3
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")
_OF_CODE = frozenset(r"_.()[]{}<>=/\:@#$")
_ELISION = re.compile(r"\b(?:l|d|j|qu|n|c|s|m|t|dell|nell|all|un)['’](?=[a-zà-ü]{2})", re.IGNORECASE)

# Models by their usual names, hub prefix aside: `sentence-transformers/all-mpnet-base-v2`, `BAAI/bge-small-en-v1.5`.
_ENGLISH_MODEL = re.compile(
    r"all-(?:minilm|mpnet|distilroberta|roberta)|multi-qa-|msmarco-|paraphrase-(?:minilm|mpnet|albert|distilroberta)"
    r"|(?:bge|gte|e5|gist|stella|jina-embeddings-v2)-(?:.*-)?(?:en|english)(?:-|$)"
    r"|(?:gte|e5)-(?:small|base|large)(?:-v2)?$"
    r"|nomic-embed-text-v1|mxbai-embed-large|snowflake-arctic-embed-(?:xs|s|m|l)(?:-v1\.5)?$|gtr-t5|sentence-t5|ember-v1"
)


def is_foreign(question: str) -> bool:
    """Return whether `question` is certainly in another language than English."""
    return find_language(question) not in ("en", "")


def find_language(question: str) -> str:
    """Return the language of `question` (BCP 47), "und" if certainly another than English but not which, "" if unsure.

    A script stands for the language that most who ask in it write: Cyrillic for Russian.
    """
    prose = _without_code(unicodedata.normalize("NFC", question))
    letters = [letter for letter in prose if letter.isalpha()]
    other = [letter for letter in letters if not _is_latin(letter)]
    if len(other) >= 2 and len(other) >= _OTHER_SCRIPT * len(letters):
        return _language_of_script(other)
    words = set(re.findall(r"[^\W\d_]+", prose.lower()))
    english = len(words & _ENGLISH)
    found = Counter(language for word in words for language in _LANGUAGES.get(word, ()))
    language = max(_FUNCTION_WORDS, key=found.__getitem__)
    known = found[language] + bool(_ELISION.search(prose))
    accented = sum(not word.isascii() and word not in _LANGUAGES for word in words)
    if known + accented >= 2 and known + accented > english and (known > 0 or english == 0):
        return language if found[language] else "und"
    return "en" if english else ""


def _without_code(text: str) -> str:
    """Return `text` without what stands in quotes, and without words that are code: my_list, a.b, camelCase, x=1."""
    return " ".join(word for word in _QUOTED.sub(" ", text).split() if not _is_code(word))


def _is_code(word: str) -> bool:
    inner = word.rstrip(".,:")
    if any(letter in _OF_CODE or letter.isdigit() for letter in inner):
        return True
    small = re.search("[a-z]", inner)
    return bool(small and re.search("[A-Z]", inner[small.end() :]))


def same_language(one: str, other: str) -> bool:
    """Return whether two BCP 47 tags are of one language: en and en-GB."""
    return one.lower().partition("-")[0] == other.lower().replace("_", "-").partition("-")[0]


def _language_of_script(letters: Sequence[str]) -> str:
    scripts = {unicodedata.name(letter, "").split(" ")[0].split("-")[0] for letter in letters}
    return next((language for script, language in _SCRIPTS.items() if script in scripts), "und")


def reads_only_english(model: str) -> bool:
    """Return whether an embedding model is known, by its name, to read only English."""
    name = model.rstrip("/").rpartition("/")[2].lower()
    return "multilingual" not in name and bool(_ENGLISH_MODEL.match(name))


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "LATIN").startswith("LATIN")
