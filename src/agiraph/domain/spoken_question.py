"""Spoken question: finds the question, or the request for leave to go on, that ends a reply.

The patterns cover the languages in which models most often answer. Only the last words of a reply
are examined: a question in the middle of a text is part of an explanation.
"""

import re
from typing import Literal

Asked = Literal["leave", "question"]
"""`leave`: whether it may go on, which nobody needs to decide. `question`: anything else."""

_LAST_WORDS = 400
"""Characters at the end of a reply in which a request for leave is looked for."""
_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\(?\w{1,2}[.)])\s")
_DECORATION = " \t\r\n*_`~#>\"'”»)]}"
_QUESTION_END = re.compile(r"(?:[?\uff1f؟]|か。?|(?:吗|嗎|呢)。?)\W*$")
_SENTENCE_START = re.compile(r"(?<=[.!?。])\s+|\n+|(?<=[。\uff01\uff1f])")

_GO_ON = (
    r"(?:continue|proceed|go (?:on|ahead)|keep going|carry on|move (?:on|forward|ahead)|start|"
    r"begin|resume|do (?:that|this|it|so)|implement|execute|apply|take the next step|next step)"
)
_LEAVE = re.compile(
    "|".join(
        (
            # English
            r"\b(?:would|do) you (?:like|want|prefer|wish) (?:me|us) to\b",
            r"\bwant me to\b",
            rf"\b(?:shall|should|may|can|could|must) (?:i|we)\b[^.?!]{{0,40}}\b{_GO_ON}\b",
            rf"\b(?:ok|okay|fine|alright|ready|good|safe) (?:for me )?to {_GO_ON}",
            r"\b(?:is|does) (?:that|this) (?:ok|okay|fine|alright|sound (?:good|right))\b",
            r"\b(?:let me know|tell me|just say) (?:if|when|whether) (?:you(?:'d| would)? "
            r"(?:like|want)|i (?:should|may|can)|it is ok)",
            rf"\b(?:please )?(?:confirm|approve)\b[^.?!]{{0,60}}\b{_GO_ON}",
            r"\bi(?:'m| am)? await(?:ing)? your (?:go-ahead|confirmation|approval)",
            # German
            r"\b(?:soll|darf|kann) ich\b[^.?!]{0,60}\b(?:fortfahren|weitermachen|weiter|beginnen|"
            r"anfangen|loslegen|starten|fortsetzen)\b",
            r"\bm(?:ö|oe)cht(?:en sie|est du|et ihr),? dass ich\b",
            r"\b(?:wollen sie|willst du),? dass ich\b",
            r"\bsoll es weitergehen\b",
            # French
            r"\b(?:voulez-vous|veux-tu|souhaitez-vous|souhaites-tu|désirez-vous) que je\b",
            r"\b(?:dois|puis|peux)-je\b[^.?!]{0,60}\b(?:continuer|poursuivre|procéder|commencer)\b",
            r"\best-ce que je (?:continue|poursuis|peux continuer)",
            # Spanish
            r"(?:quieres|quiere|desea|deseas|te gustaría|le gustaría) que (?:yo )?\w+",
            r"\b(?:debo|puedo|debería)\b[^.?!]{0,40}\b(?:continuar|seguir|proceder|empezar|comenzar)",
            r"¿\s*(?:continúo|sigo|procedo)\b",
            # Italian
            r"\b(?:vuoi|vuole|desideri|desidera|preferisci) che (?:io )?\w+",
            r"\b(?:devo|posso)\b[^.?!]{0,40}\b(?:continuare|procedere|proseguire|iniziare)",
            r"\b(?:procedo|continuo|proseguo)\s*\?",
            # Portuguese
            r"\b(?:quer|queres|gostaria|gostarias|deseja) que eu\b",
            r"\b(?:devo|posso)\b[^.?!]{0,40}\b(?:continuar|prosseguir|proceder|começar)",
            # Russian
            r"(?:хотите|хочешь|желаете),? чтобы я\b",
            r"(?:мне|могу ли я|следует ли мне|стоит ли мне|можно)\s+(?:\w+\s+)?"
            r"(?:продолж|приступ|нача)",
            r"\b(?:продолжить|продолжать|продолжаем|приступить)\s*\?",
            # Chinese
            r"(?:需要|要|要不要|是否需要|是否要|希望|想让|想要)我.{0,20}(?:继续|繼續|开始|開始|进行|進行)",
            r"(?:是否|可以|能否|要不要|我应该|我應該)(?:继续|繼續|开始|開始)",
            r"(?:继续|繼續)(?:吗|嗎|么)",
            # Japanese
            r"(?:続け|進め|始め|開始し)(?:て|ても|ます|ましょう|て(?:も)?(?:いい|よい|よろしい))"
            r".{0,12}か",
            r"(?:しましょうか|よろしいでしょうか|よろしいですか)",
            # Korean
            r"(?:계속|진행|시작)(?:\s?해도|할|하)?.{0,8}(?:까요|될까요|되나요)",
        )
    ),
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"\b(?:or|oder|ou|o|oppure|или)\s+(?!(?:not|stop|wait|pause|nicht|warten|pas|no|non|não|нет|"
    r"should|do|would|something|anything|change|adjust|prefer)\b)|还是|還是|それとも",
    re.IGNORECASE,
)


def asked_in(text: str) -> Asked | None:
    """Return what the last words of a reply ask for; None if they ask for nothing."""
    last = _last_sentence(text)
    if not last:
        return None
    is_question = _QUESTION_END.search(last) is not None
    # A choice between two things is a question however it begins: "Would you like me to take the
    # red one or the blue one?" Nobody but the reader can make it.
    if _LEAVE.search(last) and not (is_question and _ALTERNATIVE.search(last)):
        return "leave"
    return "question" if is_question else None


def _last_sentence(text: str) -> str:
    """Return the last sentence of a text, without decoration; a list of choices behind it is no
    sentence."""
    lines = text.rstrip().splitlines()
    while len(lines) > 1 and (not lines[-1].strip() or _LIST_ITEM.match(lines[-1])):
        lines.pop()
    last = "\n".join(lines).rstrip(_DECORATION)[-_LAST_WORDS:]
    sentences = [part for part in _SENTENCE_START.split(last) if part and part.strip(_DECORATION)]
    return sentences[-1].strip() if sentences else ""
