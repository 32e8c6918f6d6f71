"""Report words: the headings and short phrases of a report's frame, in several languages."""

from typing import get_args

from agiraph.core.domain.value import value
from agiraph.core.domain.work import StopReason
from agiraph.features.research.model.evidence import SourceClass

_LIMITS = (
    StopReason.MONEY_SPENT,
    StopReason.TOKENS_SPENT,
    StopReason.TIME_SPENT,
    StopReason.CALLS_SPENT,
    StopReason.TURNS_SPENT,
)


@value
class ReportPhrases:
    sources: str
    missing: str
    assumptions: str
    struck: str
    """With the place {count}."""
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
    nouns: tuple[tuple[str, str], tuple[str, str], tuple[str, str], tuple[str, str]]
    """One and several searches, pages that were read, sources and quotations, in this order."""
    zero_is_singular: bool = False

    nothing: str
    """For a job without any evidence."""
    no_news: str
    no_page: str
    """For a repeated question whose job could read no page."""
    not_written: str
    stopped: str
    """With the place {reason}, which is one of `limits`."""
    limits: tuple[str, str, str, str, str]
    """Money, tokens, time, searches and pages, and turns are used up, in this order."""
    wanted_more: str
    """Said of a reader that had no searches or pages left."""
    no_model: str
    """Said of a reader whose model refuses to work."""
    failed: str
    """Said of a reader that ended for any other reason."""
    not_used: str
    """For a report that could not be written again after a message of a person."""
    compared: str
    """With the places {done} and {all}."""

    def of_limit(self, reason: StopReason) -> str:
        """Return why a job ended early; the runtime's own words if no limit was used up."""
        return self.limits[_LIMITS.index(reason)] if reason in _LIMITS else reason.words

    def of_reader(self, reason: StopReason) -> str:
        """Return why a reader ended before it was done."""
        if reason is StopReason.MODEL_REFUSED:
            return self.no_model
        return self.of_limit(reason) if reason in _LIMITS else self.failed

    def count(self, counts: tuple[int, int, int, int]) -> tuple[str, ...]:
        """Return how many searches, pages, sources and quotations there are, with their nouns."""
        are_one = [n == 1 or (n == 0 and self.zero_is_singular) for n in counts]
        return tuple(
            f"{n} {one if is_one else several}"
            for n, is_one, (one, several) in zip(counts, are_one, self.nouns, strict=True)
        )

    def of_class(self, source: SourceClass) -> str:
        """Return the name of a class of sources."""
        return self.classes[get_args(SourceClass).index(source)]


ENGLISH = ReportPhrases(
    sources="Sources",
    missing="What could not be found",
    assumptions="Assumptions",
    struck="Sentences left out, because no source shows them: {count}.",
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
    counts="{searches}, {pages}, {sources} with {quotes}, {cost}, depth {depth}.",
    nouns=(
        ("search", "searches"),
        ("page read", "pages read"),
        ("source", "sources"),
        ("quotation", "quotations"),
    ),
    nothing="No evidence was found, so the report states nothing.",
    no_news="Nothing new was found since the last report.",
    no_page="No page could be read this time, so it is not known whether anything is new.",
    not_written="No report could be written. This is what was "
    "noted, each entry with the source that shows it.",
    stopped="The research stopped early: {reason}.",
    limits=(
        "its money is used up",
        "its tokens are used up",
        "its time is used up",
        "its searches and pages are used up",
        "its turns are used up",
    ),
    wanted_more="its reader wanted more searches or pages than it had",
    no_model="the reader's model cannot be used",
    failed="its reader failed",
    not_used="The report could not be written again, so the "
    "last message or finding is not used in it.",
    compared="Sentences that a model compared with their quotations: {done} of {all}.",
)
_GERMAN = ReportPhrases(
    sources="Quellen",
    missing="Was nicht zu finden war",
    assumptions="Annahmen",
    struck="Sätze, die wegfielen, weil keine Quelle sie belegt: {count}.",
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
    counts="{searches}, {pages}, {sources} mit {quotes}, {cost}, Tiefe {depth}.",
    nouns=(
        ("Suche", "Suchen"),
        ("Seite gelesen", "Seiten gelesen"),
        ("Quelle", "Quellen"),
        ("Zitat", "Zitaten"),
    ),
    nothing="Es wurden keine Belege gefunden, darum sagt der Bericht nichts aus.",
    no_news="Seit dem letzten Bericht wurde nichts Neues gefunden.",
    no_page="Diesmal konnte keine Seite gelesen werden; ob es Neues gibt, ist darum nicht bekannt.",
    not_written="Es konnte kein Bericht geschrieben werden. Dies wurde "
    "notiert, jeder Eintrag mit der Quelle, die ihn belegt.",
    stopped="Die Recherche endete vorzeitig: {reason}.",
    limits=(
        "ihr Geld ist verbraucht",
        "ihre Token sind verbraucht",
        "ihre Zeit ist verbraucht",
        "ihre Suchen und Seiten sind verbraucht",
        "ihre Schritte sind verbraucht",
    ),
    wanted_more="hier reichten die Suchen oder Seiten nicht aus",
    no_model="das Modell des Lesers ist nicht verwendbar",
    failed="der Leser ist gescheitert",
    not_used="Der Bericht konnte nicht neu geschrieben werden; die letzte "
    "Nachricht oder der letzte Fund ist darin nicht berücksichtigt.",
    compared="Sätze, die ein Modell mit ihren Zitaten verglichen hat: {done} von {all}.",
)
_FRENCH = ReportPhrases(
    sources="Sources",
    missing="Ce qui n'a pas été trouvé",
    assumptions="Hypothèses",
    struck="Phrases omises, faute de source : {count}.",
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
    counts="{searches}, {pages}, {sources} avec {quotes}, {cost}, profondeur {depth}.",
    nouns=(
        ("recherche", "recherches"),
        ("page lue", "pages lues"),
        ("source", "sources"),
        ("citation", "citations"),
    ),
    zero_is_singular=True,
    nothing="Aucune preuve n'a été trouvée : le rapport n'affirme donc rien.",
    no_news="Rien de nouveau n'a été trouvé depuis le dernier rapport.",
    no_page="Aucune page n'a pu être lue cette fois : on ne sait donc pas s'il y a du nouveau.",
    not_written="Aucun rapport n'a pu être rédigé. Voici ce qui a "
    "été noté, chaque entrée avec la source qui la montre.",
    stopped="La recherche s'est arrêtée trop tôt : {reason}.",
    limits=(
        "son argent est épuisé",
        "ses jetons sont épuisés",
        "son temps est épuisé",
        "ses recherches et ses pages sont épuisées",
        "ses tours sont épuisés",
    ),
    wanted_more="il y fallait plus de recherches ou de pages",
    no_model="le modèle du lecteur est inutilisable",
    failed="le lecteur a échoué",
    not_used="Le rapport n'a pas pu être réécrit : le "
    "dernier message ou résultat n'y est pas pris en compte.",
    compared="Phrases qu'un modèle a comparées à leurs citations : {done} sur {all}.",
)
_SPANISH = ReportPhrases(
    sources="Fuentes",
    missing="Lo que no se pudo encontrar",
    assumptions="Supuestos",
    struck="Frases omitidas, porque ninguna fuente las muestra: {count}.",
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
    counts="{searches}, {pages}, {sources} con {quotes}, {cost}, profundidad {depth}.",
    nouns=(
        ("búsqueda", "búsquedas"),
        ("página leída", "páginas leídas"),
        ("fuente", "fuentes"),
        ("cita", "citas"),
    ),
    nothing="No se encontraron pruebas, por lo que el informe no afirma nada.",
    no_news="No se encontró nada nuevo desde el último informe.",
    no_page="Esta vez no se pudo leer ninguna página, por lo que no se sabe si hay algo nuevo.",
    not_written="No se pudo redactar ningún informe. Esto es lo que "
    "se anotó, cada entrada con la fuente que la muestra.",
    stopped="La investigación terminó antes de tiempo: {reason}.",
    limits=(
        "se agotó su dinero",
        "se agotaron sus tokens",
        "se agotó su tiempo",
        "se agotaron sus búsquedas y páginas",
        "se agotaron sus turnos",
    ),
    wanted_more="hacían falta más búsquedas o páginas",
    no_model="el modelo del lector no se puede usar",
    failed="el lector falló",
    not_used="El informe no se pudo redactar de nuevo, por lo "
    "que el último mensaje o hallazgo no se tiene en cuenta.",
    compared="Frases que un modelo comparó con sus citas: {done} de {all}.",
)
_ITALIAN = ReportPhrases(
    sources="Fonti",
    missing="Che cosa non è stato trovato",
    assumptions="Ipotesi",
    struck="Frasi omesse, perché nessuna fonte le mostra: {count}.",
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
    counts="{searches}, {pages}, {sources} con {quotes}, {cost}, profondità {depth}.",
    nouns=(
        ("ricerca", "ricerche"),
        ("pagina letta", "pagine lette"),
        ("fonte", "fonti"),
        ("citazione", "citazioni"),
    ),
    nothing="Non è stata trovata alcuna prova, quindi il rapporto non afferma nulla.",
    no_news="Dall'ultimo rapporto non è stato trovato nulla di nuovo.",
    no_page="Questa volta non è stato possibile leggere alcuna "
    "pagina, quindi non si sa se ci sono novità.",
    not_written="Non è stato possibile scrivere un rapporto. Questo è ciò che "
    "è stato annotato, ogni voce con la fonte che la mostra.",
    stopped="La ricerca si è fermata prima del tempo: {reason}.",
    limits=(
        "il denaro è esaurito",
        "i token sono esauriti",
        "il tempo è esaurito",
        "le ricerche e le pagine sono esaurite",
        "i turni sono esauriti",
    ),
    wanted_more="servivano altre ricerche o pagine",
    no_model="il modello del lettore non è utilizzabile",
    failed="il lettore non è riuscito",
    not_used="Non è stato possibile riscrivere il rapporto, quindi "
    "l'ultimo messaggio o risultato non vi è considerato.",
    compared="Frasi che un modello ha confrontato con le loro citazioni: {done} su {all}.",
)
_PORTUGUESE = ReportPhrases(
    sources="Fontes",
    missing="O que não foi encontrado",
    assumptions="Pressupostos",
    struck="Frases omitidas, porque nenhuma fonte as mostra: {count}.",
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
    counts="{searches}, {pages}, {sources} com {quotes}, {cost}, profundidade {depth}.",
    nouns=(
        ("pesquisa", "pesquisas"),
        ("página lida", "páginas lidas"),
        ("fonte", "fontes"),
        ("citação", "citações"),
    ),
    nothing="Não foram encontradas provas, por isso o relatório nada afirma.",
    no_news="Nada de novo foi encontrado desde o último relatório.",
    no_page="Desta vez não foi possível ler nenhuma página, por isso não se sabe se há novidades.",
    not_written="Não foi possível escrever um relatório. Isto é o que "
    "foi anotado, cada entrada com a fonte que a mostra.",
    stopped="A pesquisa terminou antes do tempo: {reason}.",
    limits=(
        "o dinheiro esgotou-se",
        "os tokens esgotaram-se",
        "o tempo esgotou-se",
        "as pesquisas e páginas esgotaram-se",
        "os turnos esgotaram-se",
    ),
    wanted_more="eram precisas mais pesquisas ou páginas",
    no_model="o modelo do leitor não pode ser usado",
    failed="o leitor falhou",
    not_used="Não foi possível reescrever o relatório, por isso "
    "a última mensagem ou descoberta não é considerada nele.",
    compared="Frases que um modelo comparou com as suas citações: {done} de {all}.",
)
_DUTCH = ReportPhrases(
    sources="Bronnen",
    missing="Wat niet te vinden was",
    assumptions="Aannames",
    struck="Zinnen die zijn weggelaten, omdat geen bron ze toont: {count}.",
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
    counts="{searches}, {pages}, {sources} met {quotes}, {cost}, diepte {depth}.",
    nouns=(
        ("zoekopdracht", "zoekopdrachten"),
        ("pagina gelezen", "pagina's gelezen"),
        ("bron", "bronnen"),
        ("citaat", "citaten"),
    ),
    nothing="Er is geen bewijs gevonden, dus het rapport stelt niets vast.",
    no_news="Sinds het laatste rapport is er niets nieuws gevonden.",
    no_page="Deze keer kon geen pagina worden gelezen, dus "
    "het is niet bekend of er iets nieuws is.",
    not_written="Er kon geen rapport worden geschreven. Dit is wat "
    "is genoteerd, elk punt met de bron die het toont.",
    stopped="Het onderzoek stopte voortijdig: {reason}.",
    limits=(
        "het geld is op",
        "de tokens zijn op",
        "de tijd is op",
        "de zoekopdrachten en pagina's zijn op",
        "de beurten zijn op",
    ),
    wanted_more="er waren meer zoekopdrachten of pagina's nodig",
    no_model="het model van de lezer is onbruikbaar",
    failed="de lezer is mislukt",
    not_used="Het rapport kon niet opnieuw worden geschreven, dus het laatste "
    "bericht of de laatste vondst is er niet in verwerkt.",
    compared="Zinnen die een model met hun citaten heeft vergeleken: {done} van de {all}.",
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


def words_of(language: str) -> ReportPhrases:
    """Return the words of a language, named in English or by its code; else those of English."""
    name = language.strip()
    return _BY_LANGUAGE.get(name.capitalize()) or _BY_LANGUAGE.get(name.lower()[:2], ENGLISH)
