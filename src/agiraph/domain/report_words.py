"""Report words: the headings and short phrases of a report's frame, in several languages."""

from typing import get_args

from agiraph.domain.evidence import SourceClass
from agiraph.domain.value import value


@value
class Words:
    sources: str
    missing: str
    assumptions: str
    struck: str
    effort: str
    published: str
    read: str
    one_source: str
    single: str
    confirmed: str
    unchecked: str
    no_price: str
    """In place of the cost, if no price is known."""
    classes: tuple[str, str, str, str, str, str]
    """A primary, reference, press, vendor, forum and unrated source, in this order."""
    new_since: str
    """With the place {date}."""
    counts: str
    """With the places {searches}, {pages}, {sources}, {quotes}, {cost} and {depth}."""

    def of_class(self, source: SourceClass) -> str:
        """Return the name of a class of sources."""
        return self.classes[get_args(SourceClass).index(source)]


ENGLISH = Words(
    sources="Sources",
    missing="What could not be found",
    assumptions="Assumptions",
    struck="Left out, because no source shows it",
    effort="How this was made",
    published="published",
    read="read",
    one_source="one source",
    single="single source",
    confirmed="confirmed by another source",
    unchecked="quotation unchecked",
    no_price="cost unknown",
    classes=("primary source", "reference work", "press", "seller", "forum", "unrated site"),
    new_since="New since the report of {date}",
    counts="{searches} searches, {pages} pages read, {sources} sources with {quotes} quotations, "
    "{cost}, depth {depth}.",
)
_GERMAN = Words(
    sources="Quellen",
    missing="Was nicht zu finden war",
    assumptions="Annahmen",
    struck="Weggelassen, weil keine Quelle es belegt",
    effort="Wie dieser Bericht entstand",
    published="veröffentlicht",
    read="gelesen",
    one_source="eine Quelle",
    single="einzige Quelle",
    confirmed="durch eine weitere Quelle bestätigt",
    unchecked="Zitat ungeprüft",
    no_price="Kosten unbekannt",
    classes=("Primärquelle", "Nachschlagewerk", "Presse", "Anbieter", "Forum", "unbewertete Seite"),
    new_since="Neu seit dem Bericht vom {date}",
    counts="{searches} Suchen, {pages} Seiten gelesen, {sources} Quellen mit {quotes} Zitaten, "
    "{cost}, Tiefe {depth}.",
)
_FRENCH = Words(
    sources="Sources",
    missing="Ce qui n'a pas été trouvé",
    assumptions="Hypothèses",
    struck="Omis, faute de source",
    effort="Comment ce rapport a été fait",
    published="publié",
    read="lu",
    one_source="une seule source",
    single="source unique",
    confirmed="confirmé par une autre source",
    unchecked="citation non vérifiée",
    no_price="coût inconnu",
    classes=(
        "source primaire",
        "ouvrage de référence",
        "presse",
        "vendeur",
        "forum",
        "site non évalué",
    ),
    new_since="Nouveau depuis le rapport du {date}",
    counts="{searches} recherches, {pages} pages lues, {sources} sources avec {quotes} citations, "
    "{cost}, profondeur {depth}.",
)
_SPANISH = Words(
    sources="Fuentes",
    missing="Lo que no se pudo encontrar",
    assumptions="Supuestos",
    struck="Omitido, porque ninguna fuente lo muestra",
    effort="Cómo se hizo este informe",
    published="publicado",
    read="leído",
    one_source="una sola fuente",
    single="fuente única",
    confirmed="confirmado por otra fuente",
    unchecked="cita sin comprobar",
    no_price="coste desconocido",
    classes=(
        "fuente primaria",
        "obra de referencia",
        "prensa",
        "vendedor",
        "foro",
        "sitio sin valorar",
    ),
    new_since="Nuevo desde el informe del {date}",
    counts="{searches} búsquedas, {pages} páginas leídas, {sources} fuentes con {quotes} citas, "
    "{cost}, profundidad {depth}.",
)
_ITALIAN = Words(
    sources="Fonti",
    missing="Che cosa non è stato trovato",
    assumptions="Ipotesi",
    struck="Omesso, perché nessuna fonte lo mostra",
    effort="Come è nato questo rapporto",
    published="pubblicato",
    read="letto",
    one_source="una sola fonte",
    single="fonte unica",
    confirmed="confermato da un'altra fonte",
    unchecked="citazione non verificata",
    no_price="costo sconosciuto",
    classes=(
        "fonte primaria",
        "opera di consultazione",
        "stampa",
        "venditore",
        "forum",
        "sito non valutato",
    ),
    new_since="Novità dal rapporto del {date}",
    counts="{searches} ricerche, {pages} pagine lette, {sources} fonti con {quotes} citazioni, "
    "{cost}, profondità {depth}.",
)
_PORTUGUESE = Words(
    sources="Fontes",
    missing="O que não foi encontrado",
    assumptions="Pressupostos",
    struck="Omitido, porque nenhuma fonte o mostra",
    effort="Como este relatório foi feito",
    published="publicado",
    read="lido",
    one_source="uma só fonte",
    single="fonte única",
    confirmed="confirmado por outra fonte",
    unchecked="citação não verificada",
    no_price="custo desconhecido",
    classes=(
        "fonte primária",
        "obra de referência",
        "imprensa",
        "vendedor",
        "fórum",
        "site não avaliado",
    ),
    new_since="Novo desde o relatório de {date}",
    counts="{searches} pesquisas, {pages} páginas lidas, {sources} fontes com {quotes} citações, "
    "{cost}, profundidade {depth}.",
)
_DUTCH = Words(
    sources="Bronnen",
    missing="Wat niet te vinden was",
    assumptions="Aannames",
    struck="Weggelaten, omdat geen bron het toont",
    effort="Hoe dit rapport is gemaakt",
    published="gepubliceerd",
    read="gelezen",
    one_source="één bron",
    single="enige bron",
    confirmed="bevestigd door een andere bron",
    unchecked="citaat niet gecontroleerd",
    no_price="kosten onbekend",
    classes=("primaire bron", "naslagwerk", "pers", "verkoper", "forum", "onbeoordeelde site"),
    new_since="Nieuw sinds het rapport van {date}",
    counts="{searches} zoekopdrachten, {pages} pagina's gelezen, {sources} bronnen met {quotes} "
    "citaten, {cost}, diepte {depth}.",
)
_BY_LANGUAGE = {
    "English": ENGLISH,
    "German": _GERMAN,
    "French": _FRENCH,
    "Spanish": _SPANISH,
    "Italian": _ITALIAN,
    "Portuguese": _PORTUGUESE,
    "Dutch": _DUTCH,
    **{"en": ENGLISH, "de": _GERMAN, "fr": _FRENCH, "es": _SPANISH, "it": _ITALIAN},
    **{"pt": _PORTUGUESE, "nl": _DUTCH},
    **{"Deutsch": _GERMAN, "Français": _FRENCH, "Español": _SPANISH, "Italiano": _ITALIAN},
}


def words_of(language: str) -> Words:
    """Return the words of a language, named in English or by its code; else those of English."""
    name = language.strip()
    return _BY_LANGUAGE.get(name.capitalize()) or _BY_LANGUAGE.get(name.lower()[:2], ENGLISH)
