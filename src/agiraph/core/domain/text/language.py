"""Language: guess the language of a short text, by its script and its most common words."""

import re

from agiraph.late_patterns import late

_SCRIPTS = (
    ("Japanese", late(r"[\u3040-\u30ff]")),
    ("Korean", late(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("Chinese", late(r"[\u4e00-\u9fff]")),
    ("Greek", late(r"[\u0370-\u03ff]")),
    ("Hebrew", late(r"[\u0590-\u05ff]")),
    ("Arabic", late(r"[\u0600-\u06ff]")),
    ("Hindi", late(r"[\u0900-\u097f]")),
    ("Thai", late(r"[\u0e00-\u0e7f]")),
)
"""Languages by a script that only they, or mostly they, are written in; the first that fits."""
_CYRILLIC = late(r"[\u0400-\u04ff]")
_UKRAINIAN = late(r"[іїєґ]", re.IGNORECASE)
_WORDS = {
    "English": "the and is are you to of in that it for with please what how can have this my do "
    "when not i we was will would could should",
    "German": "der die das und ist nicht ich du sie wir ein eine mit für auf bitte wie was kannst "
    "kann den dem zu von mir heute wann wird sind es",
    "French": "le la les et est une des que je vous tu pas pour dans avec sur merci quel quelle "
    "peux pouvez du au ce cette nous il bonjour",
    "Spanish": "el los las es una que por para con no y de en me qué cómo puedes está mi gracias "
    "cuándo hola lo se del",
    "Italian": "il lo gli è una che per con non di del della come puoi grazie sono mi questo cosa "
    "quando ciao nel",
    "Portuguese": "o os as é uma que para com não de do da em você por favor como obrigado está "
    "quando isso meu olá",
    "Dutch": "de het een is niet ik je jij we van voor met op wat hoe kun kan dat deze alsjeblieft "
    "graag zijn en",
    "Polish": "nie jest się na czy proszę jak co to i że mi możesz dla od kiedy dzień dziękuję",
    "Swedish": "och är det att en jag du inte för med på som kan vad hur tack har den vi",
    "Turkish": "ve bir bu ne için mi lütfen ben sen var değil çok teşekkürler olarak",
}
_COMMON = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_SURE = 2
"""Common words of a language that a text must have, and have more of than of any other."""
_SHARE = 0.3
"""The share of letters from which on a script decides."""


def guess(text: str) -> str | None:
    """Return the English name of the text's language; None if it is not clear."""
    letters = sum(character.isalpha() for character in text)
    if not letters:
        return None
    for language, script in _SCRIPTS:
        if len(script.findall(text)) >= _SHARE * letters:
            return language
    if len(_CYRILLIC.findall(text)) >= _SHARE * letters:
        return "Ukrainian" if _UKRAINIAN.search(text) else "Russian"
    said = re.findall(r"[^\W\d_]+", text.lower())
    counts = {name: sum(word in common for word in said) for name, common in _COMMON.items()}
    first, second, *_ = sorted(counts.values(), reverse=True)
    if first < _SURE or first == second:
        return None
    return next(name for name, count in counts.items() if count == first)
