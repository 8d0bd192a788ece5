from __future__ import annotations

import pytest

from knowledge.memory.gate import why_skipped


@pytest.mark.parametrize(
    "text",
    """hi|Hello!|hey there|Good morning, everyone|thank you very much|ok|Danke schön|Guten Tag|Grüß Gott
    |Moin moin|merci beaucoup|hola, buenos días|¿qué tal?|ciao|obrigado|tack|cześć|привет!
    |добрый день|merhaba|γεια σου|שלום|مرحبا|नमस्ते|你好！|谢谢|こんにちは|안녕하세요|xin chào""".replace(
        "\n", ""
    ).split("|"),
)
def test_small_talk_in_many_languages_is_skipped(text: str) -> None:
    assert why_skipped(text.strip()) == "greeting"


@pytest.mark.parametrize(
    "text", ["", " \n\t", "...", "?!", "👍", "👩‍👩‍👧", "—", "\u200b\u200d", "_ _"]
)
def test_what_holds_no_word_is_skipped(text: str) -> None:
    assert why_skipped(text) == "no words"


@pytest.mark.parametrize(
    "text",
    [
        "hello-service",
        "Bonjour à",
        "tag",
        "K",
        "up",
        "moi",
        "is it up",
        "see all",
        "God",
        "good",
        "evening",
        "hi, why does the build fail",
        "good practices",
        "is it",
        "there",
        "team",
        "ok, deploy",
        "night build",
        "warum",
        "42",
        "部署",
        "как деплоить",
        "the nightly team job so very much",
        "are you there now please deploy",
    ],
)
def test_questions_are_asked(text: str) -> None:
    assert why_skipped(text) is None
