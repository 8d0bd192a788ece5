"""What is not worth recalling for: greetings, thanks, and what holds no word."""

from __future__ import annotations

import unicodedata
from typing import Final

from knowledge.model.fact import name_key

NO_WORDS: Final = "no words"
GREETING: Final = "greeting"
MAX_SMALL_TALK_WORDS: Final = 6

_GREETINGS: Final = (
    "hi hello hey heya hiya howdy greetings bye goodbye cya thanks thank thx ty cheers",
    "hallo servus moin tschüss tschuess danke grüß gruess wiedersehen",
    "bonjour bonsoir salut coucou merci",
    "hola buenos buenas gracias adiós adios",
    "ciao buongiorno buonasera grazie arrivederci",
    "olá ola obrigado obrigada tchau",
    "hoi goedemorgen goedemiddag dankjewel bedankt doei",
    "hej hejsan tack takk hei kiitos",
    "cześć czesc dziękuję dziekuje ahoj děkuji",
    "привет здравствуйте здравствуй спасибо привіт дякую",
    "merhaba selam günaydın teşekkür teşekkürler",
    "γεια γειά καλημέρα ευχαριστώ",
    "שלום תודה",
    "مرحبا السلام شكرا",
    "नमस्ते धन्यवाद हेलो",
    "你好 您好 谢谢 早上好 晚上好 再见 嗨 哈喽",
    "こんにちは おはよう おはようございます ありがとう ありがとうございます こんばんは さようなら",
    "안녕 안녕하세요 감사합니다 고마워",
    "chào สวัสดี ขอบคุณ halo terima kasih",
)
"""Words that greet, part or thank, and mean nothing else; a line a language."""

_BESIDE: Final = (
    "good morning afternoon evening night day you later see welcome ok okay yes yep yeah please all"
    " there everyone team how are doing is it what's up sup again so much very great nice fine",
    "guten morgen tag abend nacht auf vielen schön schoen bitte ja nein gott dir wie geht's geht es",
    "beaucoup bien au revoir oui non ça va ca",
    "días dias tardes noches muchas hasta luego sí si qué tal cómo como estás estas",
    "mille prego bom dia boa tarde noite tudo bem",
    "god morgon dzień dobry dobrý den",
    "пока доброе утро добрый день вечер как дела",
    "ederim σου בוקר טוב מה נשמע عليكم صباح الخير pagi selamat xin cảm ơn",
)
"""Words that may stand beside a greeting; alone they may be a name or a question."""

_KNOWN: Final = tuple(
    frozenset(name_key(word) for line in lines for word in line.split())
    for lines in (_GREETINGS, _BESIDE)
)
_ASSENT: Final = frozenset(
    ("ok", "okay", "yes", "yep", "yeah", "ja", "nein", "oui", "да", "нет", "好的")
)


def why_skipped(query: str) -> str | None:
    """Why nothing is recalled for this text; None when something is."""
    words = words_of(query)
    greetings, beside = _KNOWN
    if not words:
        return NO_WORDS
    is_small_talk = all(word in greetings or word in beside or word in _ASSENT for word in words)
    if len(words) > MAX_SMALL_TALK_WORDS or not is_small_talk:
        return None
    is_greeting = not greetings.isdisjoint(words) or _ASSENT.issuperset(words)
    return GREETING if is_greeting or _greets_by_time_of_day(words) else None


def _greets_by_time_of_day(words: list[str]) -> bool:
    """Such as "good morning": two words that only together greet."""
    return any(
        first in words and not set(rest.split()).isdisjoint(words)
        for first, rest in (
            ("good", "morning afternoon evening night day"),
            ("guten", "morgen tag abend"),
            ("gute", "nacht"),
            ("bom", "dia"),
            ("boa", "tarde noite"),
            ("god", "morgon"),
            ("dzień", "dobry"),
            ("dobrý", "den"),
            ("доброе", "утро"),
            ("добрый", "день вечер"),
            ("בוקר", "טוב"),
            ("صباح", "الخير"),
            ("selamat", "pagi"),
            ("qué", "tal"),
            ("xin", "chào"),
        )
    )


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, with the marks that belong to letters and apostrophes inside, as
    names are looked up."""
    spaced = "".join(c if _is_of_a_word(c) else " " for c in text.replace("’", "'"))
    words = (word.strip("'") for word in spaced.split())
    return [name_key(word) for word in words if any(c.isalnum() for c in word)]


def _is_of_a_word(character: str) -> bool:
    return (
        character.isalnum() or character == "'" or unicodedata.category(character) in ("Mn", "Mc")
    )
