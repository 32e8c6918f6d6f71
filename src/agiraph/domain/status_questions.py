"""Status questions: tell whether a person only asks how work stands or what came of it.

Such a message is answered from the work that there is. New work made of it would search for what
the team already has.
"""

import re

_SENTENCE = re.compile("(?<=[.!?\u3002\uff1f\uff01])\\s*|\n+")
_GREETING = re.compile(
    r"^(?:hi|hello|hey|thanks|thank you|ok(?:ay)?|good (?:morning|evening)|hallo|danke|bonjour"
    r"|merci|hola|gracias)\b[^?]{0,40}$",
    re.IGNORECASE,
)
_WANTS_MORE = re.compile(
    r"\b(?:please|(?:can|could|would|will) you|research|compare|find out|write|make|build|check"
    r"|look (?:up|for)|bitte|k[öo]nntest du|kannst du|pourrais-tu|peux-tu|podr[íi]as|puedes)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\bwhat (?:have|did|has) (?:you|they|we|she|he|\w+) (?:found|find|learned?|got|get|done?|come"
    r" up with)\b"
    r"|\bwhat(?:'s| is| are) (?:the )?(?:status|state|progress|news|results?|findings)\b"
    r"|\bwhat (?:does|did|do) (?:the |your |his |her |their |that )?(?:\w+ ){0,3}"
    r"(?:report|result|summary|plan|paper|file|notes?)s? say\b"
    r"|\bhow (?:far|is it going|are (?:you|things|we)|does it (?:go|look)|do (?:things|we) stand)\b"
    r"|\bwhere (?:are|do) (?:we|you|things) (?:stand|now)?"
    r"|\b(?:any (?:news|progress|results?)|are you (?:done|finished|ready)|is it (?:done|ready))\b"
    r"|\bwhat is (?:\w+ )?(?:everyone|everybody|the team|\w+) (?:doing|working on)\b"
    r"|\bwas (?:habt ihr|hast du|hat \w+) (?:\w+ ){0,8}(?:gefunden|herausgefunden|gemacht)\b"
    r"|\bwas (?:steht|sagt) \b.{0,80}\b(?:bericht|ergebnis|plan)|\bwie (?:weit|l[äa]uft|steht)\b"
    r"|\b(?:stand der dinge|schon fertig)\b"
    r"|\bqu['\u2019](?:as-tu|avez-vous) (?:trouv[ée]|fait)|\bo[ùu] en (?:es-tu|sommes-nous)\b"
    r"|\bqu[ée] (?:has|hab[ée]is) (?:encontrado|hecho)|\bc[óo]mo va\b"
    r"|(?:进展|到目前为止|どうなって|進捗)",
    re.IGNORECASE,
)
LONGEST = 400
"""Characters of a message that only asks how things stand; a longer one says more."""


def is_status_question(text: str) -> bool:
    """Whether every sentence of a message asks how work stands, or greets."""
    if len(text) > LONGEST:
        return False
    sentences = [said.strip() for said in _SENTENCE.split(text) if said.strip()]
    asking = [said for said in sentences if not _GREETING.match(said)]
    return bool(asking) and all(
        _ASKS.search(said) is not None and _WANTS_MORE.search(said) is None for said in asking
    )
