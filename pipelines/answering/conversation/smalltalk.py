"""Recognises greetings, thanks and goodbyes, and answers them without a search.

Knows phrases, not what the collection holds. A message is small talk only if all of it is: "hello world" is a question.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["greeting", "thanks", "goodbye"]

LONGEST = 200  # characters; who writes more than that wants more than to be polite
MOST_CLAUSES = 3  # of small talk on each side of a question: "Hi! Good morning. … Thanks a lot! Bye."

# The reply's first words, and what they reply to; "" repeats the greeting itself. Phrases are separated by "|".
_GREETINGS = {
    "": "hi|hello|hey|hiya|howdy|yo|greetings|good day|good morning|good afternoon|good evening|morning|evening"
    "|hallo|hai|guten Tag|guten Morgen|guten Abend|grüß Gott|grüezi|servus|moin|bonjour|bonsoir|salut|coucou"
    "|hola|buenos días|buenos dias|buenas tardes|buenas noches|buenas|ciao|salve|buongiorno|buonasera|olá|ola"
    "|oi|bom dia|boa tarde|boa noite|hoi|goedendag|goedemorgen|goedemiddag|goedenavond|hej|hejsan|god morgon"
    "|god dag|goddag|hei|moi|cześć|czesc|witam|dzień dobry|dzien dobry|ahoj|dobrý den|merhaba|selam|günaydın"
    "|привет|здравствуйте|здравствуй|добрый день|доброе утро|добрый вечер|привіт|добрий день|你好|您好|大家好"
    "|早上好|下午好|晚上好|嗨|こんにちは|こんばんは|おはよう|おはようございます|안녕|안녕하세요|नमस्ते"
    "|नमस्कार|السلام عليكم|مرحبا|أهلا|שלום|γεια|γεια σας|γεια σου|καλημέρα|xin chào|halo|selamat pagi|buna"
    "|bună|bună ziua|szia|jó napot",
    "Hello!": "how are you|how are you doing|how are you today|how do you do|how is it going|how's it going|what's up"
    "|whats up|nice to meet you|who are you|what are you|what can you do|what do you do"
    "|what can i ask you|are you a bot|are you a robot|are you human|are you there|anyone there|anybody there"
    "|wie geht's|wie geht es dir|wer bist du|ça va|comment ça va|qué tal|cómo estás|come stai|tudo bem"
    "|как дела",
}
_THANKS = {
    "You are welcome!": "thanks|thank you|thank u|thx|thanx|ty|tysm|cheers|much appreciated|appreciate it"
    "|i appreciate it|that worked|this worked|it worked|that works|it works|it works now|works now|that works now"
    "|that fixed it|this fixed it|that solved it|this solved it|that helped|this helped|that helps"
    "|that did it|that was helpful|this was helpful|very helpful|great answer|good answer|great help"
    "|well done|good job|good bot|problem solved|got it|i got it",
    "Gern geschehen!": "danke|danke schön|danke dir|danke sehr|dankeschön|vielen dank|besten dank|herzlichen dank"
    "|tausend dank|das hat geholfen|das hat funktioniert",
    "De rien !": "merci|merci beaucoup|merci bien|mille mercis|ça marche",
    "¡De nada!": "gracias|muchas gracias|mil gracias",
    "Prego!": "grazie|grazie mille|molte grazie|tante grazie",
    "De nada!": "obrigado|obrigada|muito obrigado|muito obrigada|valeu",
    "Graag gedaan!": "dank je|dank je wel|dankjewel|dank u|dank u wel|bedankt|hartelijk dank",
    "Varsågod!": "tack|tack så mycket|tusen tack",
    "Bare hyggelig!": "takk|tusen takk|mange takk|tak|mange tak|kiitos|kiitos paljon",
    "Proszę bardzo!": "dziękuję|dziekuje|dzięki|dzieki|dziękuję bardzo",
    "Rica ederim!": "teşekkürler|teşekkür ederim|çok teşekkürler|sağ ol",
    "Пожалуйста!": "спасибо|большое спасибо|спасибо большое|благодарю|дякую",
    "不客气!": "谢谢|谢谢你|谢谢您|多谢|非常感谢|謝謝",
    "どういたしまして!": "ありがとう|ありがとうございます|ありがとうございました|どうもありがとう",
    "천만에요!": "감사합니다|고마워|고마워요|고맙습니다",
    "عفوا!": "شكرا|شكرا جزيلا",
    "स्वागत है!": "धन्यवाद|शुक्रिया",
}
_GOODBYES = {
    "Goodbye!": "bye|bye bye|goodbye|good bye|see you|see you later|see ya|good night|have a nice day|have a good day"
    "|have a great day|have a good one|take care|tschüss|tschüs|auf wiedersehen|au revoir|adiós|adios"
    "|hasta luego|arrivederci|tchau|tot ziens|hej då|do widzenia|до свидания|пока|再见|さようなら",
}
# What may stand beside these phrases and asks nothing.
_FILLERS = (
    "there|all|again|everyone|everybody|you|to you|to you all|guys|folks|team|friend|friends|my friend|dear"
    "|sir|madam|bot|assistant|raydex|mate|man|buddy|so much|very much|a lot|a bunch|a ton|a million|lots|many"
    "|again|anyway|indeed|once|once more|kindly|for that|for this|for everything|in advance|ok|okay|great"
    "|perfect|awesome|cool|nice|excellent|brilliant|wonderful|fantastic|super|wow|oh|ah|well|yes|yep|yeah|no"
    "|right|all right|alright|sure|fine|now|perfectly|just fine|that's all|that is all|that's it|and|very"
    "|really|i have a question|i've got a question|can you help me|could you help me|i need help"
    "|i need some help|please|today|zusammen|alle|liebe|mucho|sehr|viel|à tous|tout le monde|a todos|amigo"
    "|tutti|pessoal|everything works|everything works now|much|that's what i needed"
    "|that's exactly what i needed|that's what i wanted|that is what i was looking for"
    "|that's what i was looking for|exactly what i needed|exactly what i was looking for"
)
# "for helping me", "for the quick answer"
_FOR = (
    r"for \w+ing(?: it| this| that| me)?"
    r"|for (?:the|your|all your|all the)(?: great| quick| fast| detailed| helpful)?"
    r" (?:help|answers?|reply|response|explanation|info|information|support|time|patience|tips?|hints?)"
)
_CLAUSE_END = re.compile(r"(?<=[,;:.!?…\n—–])\s*|\s+-+\s+")


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """A message that asks nothing, with the reply's first words."""

    kind: Kind
    opening: str

    def reply(self, collections: Sequence[str]) -> str:
        """Return a reply that says what the assistant is for; `collections` are the names it may be asked about."""
        subject = f" in {_listed(collections)}" if collections else ""
        if self.kind == "greeting":
            return (
                f"{self.opening} I answer questions from the documentation{subject} and name the sources of each "
                "answer. What would you like to know?"
            )
        if self.kind == "thanks":
            return f"{self.opening} If anything else about the documentation{subject} is unclear, ask me."
        return f"{self.opening} Come back whenever you have a question about the documentation{subject}."


def find_smalltalk(message: str) -> SmallTalk | None:
    """Return what kind of small talk all of `message` is, None for a message that may ask something."""
    if len(message) > LONGEST:
        return None
    text = _normalize(message)
    if not text:
        return next((smalltalk for sign, smalltalk in _SIGNS.items() if sign in message), None)
    if not (_ALL.fullmatch(text) and any(_has(text, phrase) for one in _OPENINGS.values() for phrase in one)):
        return None
    kind, openings = next((kind, one) for kind, one in _OPENINGS.items() if any(_has(text, phrase) for phrase in one))
    return SmallTalk(kind, openings[max((phrase for phrase in openings if _has(text, phrase)), key=len)])


def strip_smalltalk(message: str) -> str:
    """Return `message` without a greeting before, and thanks after, what it asks: "Hi, what is X? Thanks!"."""
    text = message.strip()
    for _ in range(MOST_CLAUSES):
        ends = [end.end() for end in _CLAUSE_END.finditer(text[:LONGEST])]
        if ends and ends[0] < len(text) and find_smalltalk(text[: ends[0]]):
            text = text[ends[0] :].strip()
    for _ in range(MOST_CLAUSES):
        tail = text[-LONGEST:]
        ends = [end.end() for end in _CLAUSE_END.finditer(tail) if end.end() < len(tail)]
        if ends and find_smalltalk(tail[ends[-1] :]):
            text = text[: len(text) - len(tail) + ends[-1]].strip()
    return text


def _has(text: str, phrase: str) -> bool:
    return f" {phrase} " in f" {text} "


def _normalize(text: str) -> str:
    """Return the words of `text` in lower case with single spaces between them."""
    words = re.findall(r"\w+(?:'\w+)?", unicodedata.normalize("NFKC", text).replace("’", "'").lower())
    return " ".join(words)


def _openings(table: Mapping[str, str]) -> dict[str, str]:
    """Return the opening of the reply to each phrase."""
    pairs = ((opening, phrase) for opening, phrases in table.items() for phrase in phrases.split("|"))
    return {_normalize(phrase): opening or f"{phrase[0].upper()}{phrase[1:]}!" for opening, phrase in pairs}


def _listed(names: Sequence[str]) -> str:
    kind = "the collection " if len(names) == 1 else "the collections "
    return kind + (names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}")


def _any_of(phrases: Iterable[str]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


_SIGNS = {
    "👋": SmallTalk("greeting", "Hello!"),
    **dict.fromkeys("🙏👍❤🎉", SmallTalk("thanks", "You are welcome!")),
}
# Thanks first: "hi, thanks a lot" is more thanks than greeting.
_OPENINGS: dict[Kind, dict[str, str]] = {
    "thanks": _openings(_THANKS),
    "goodbye": _openings(_GOODBYES),
    "greeting": _openings(_GREETINGS),
}
_EVERY = {*_openings({"": _FILLERS}), *(phrase for openings in _OPENINGS.values() for phrase in openings)}
# Atomic and possessive: "bye bye" is one phrase or two, and to try both for each pair takes exponential time.
_ALL = re.compile(rf"(?>(?:{_FOR}|{_any_of(_EVERY)})(?: |$))++")
