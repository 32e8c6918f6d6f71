"""Mail reading: from the bytes of an e-mail to what its author has newly written."""

import base64
import email
import email.policy
import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parseaddr, parsedate_to_datetime
from html.parser import HTMLParser

from agiraph.domain.channels import Incoming
from agiraph.domain.chat import Attachment

MAX_MAIL_BYTES = 15 * 2**20
MAX_FILE_BYTES = 10 * 2**20
MOST_FILES = 10
MAX_BODY_CHARACTERS = 100_000
"""Characters of a mail's body that are read. Anybody can send a mail, and reading takes time."""
MAX_UNPROVEN_HTML = 4_000
"""The same for a mail in HTML of which it is not known who wrote it. The standard parser takes time
that grows with the square of some texts; the code of a pairing needs little room."""
MAX_HEADER_CHARACTERS = 4_000
"""Longer headers are ignored, for the same reason."""
_IDS = re.compile(r"<[^<>\s]+>")
_MEDIA_TYPE = re.compile(r"[a-z]+/[A-Za-z0-9.+-]+")
_ATTRIBUTION = re.compile(
    r"^[ \t]*(?:On .{4,200} wrote:|Am .{4,200} schrieb .{1,200}:|Le .{4,200} a écrit\s*:"
    r"|El .{4,200} escribió\s*:|_{10,}"
    r"|-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Message d.origine|Mensaje original)"
    r" ?-{2,})\s*$",
    re.IGNORECASE,
)
"""The line before a quoted mail, as common clients write it."""
_OUTLOOK = re.compile(r"^(?:From|Von|De):\s.+", re.IGNORECASE)
_FORWARDED = re.compile(
    r"^[ \t]*(?:-{2,} ?(?:Forwarded message|Weitergeleitete Nachricht|Message transféré"
    r"|Mensaje reenviado) ?-{2,}|Begin forwarded message:|Anfang der weitergeleiteten \w+:"
    r"|Début du message (?:transféré|réexpédié)\s?:|Inicio del mensaje reenviado:)",
    re.MULTILINE | re.IGNORECASE,
)
_HEADER_LINE = re.compile(
    r"^[ \t*]*(?:(?P<sender>From|Von|De)|(?P<date>Sent|Date|Gesendet|Datum|Envoyé|Enviado|Fecha)"
    r"|(?P<to>To|An|À|Para)|(?P<subject>Subject|Betreff|Objet|Asunto))\*?\s?:",
    re.IGNORECASE,
)
"""A line of the block of headers that some clients write above a forwarded or quoted mail."""
_SKIPPED = frozenset({"script", "style", "head", "title", "blockquote"})
_BREAKS = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "table"})


def receipt_of(message_id: str) -> str:
    """Return what is stored of a Message-ID: its hash, because the id itself is a secret."""
    return hashlib.sha256(message_id.encode()).hexdigest()[:32]


def incoming(
    raw: bytes,
    *,
    own: str,
    paired: str | None,
    checked_by: str,
    is_ours: Callable[[str, str], bool],
) -> Incoming | None:
    """Return a mail as a message; None for bounces, automatic answers and our own mail.

    `is_ours` tells whether a Message-ID is that of a mail which was sent to an address from here.
    """
    mail = _parsed(raw)
    sender = parseaddr(_header(mail, "From"))[1].lower()
    if not sender or sender == own.lower() or is_automatic(mail):
        return None
    identity = _header(mail, "Message-ID")
    if not (_IDS.fullmatch(identity) and identity.isprintable() and len(identity) <= 300):
        identity = ""  # anything can stand there, for example a NUL, which no database takes
    answered = _answered(mail)
    is_answer = any(is_ours(each, sender) for each in answered)
    is_proven = is_answer or (bool(checked_by) and is_checked(mail, sender, checked_by))
    text, forwarded = _words(mail, is_answer=is_answer, is_proven=is_proven)
    # The code of a pairing stands in the subject; in other mails it only helps to file them.
    is_known = sender == paired
    files = list(_files(mail)) if is_known else []
    if forwarded and is_known:
        # Somebody else wrote it. As a file its text is labelled; the person's own text is not.
        data = base64.b64encode(forwarded.encode()).decode()
        files.insert(0, Attachment(name="forwarded.txt", media_type="text/plain", data=data))
    subject = _header(mail, "Subject")
    if not is_known:
        text = f"{subject}\n{text}"
    return Incoming(
        key=identity or hashlib.sha256(raw).hexdigest(),
        sender=sender,
        text=text or subject or "(An empty mail.)",
        sent_at=_date(mail),
        attachments=tuple(files[:MOST_FILES]),
        replies_to=tuple(map(receipt_of, answered)),
        is_proven=is_proven,
        handle=identity,
    )


def _parsed(raw: bytes) -> EmailMessage:
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    for part in mail.walk():
        long = {name for name, value in part.raw_items() if len(value) > MAX_HEADER_CHARACTERS}
        for name in long:
            del part[name]
    return mail


def is_automatic(mail: EmailMessage) -> bool:
    """Whether a program sent the mail: a bounce, an out-of-office notice, a list."""
    if _header(mail, "Auto-Submitted").lower().partition(";")[0].strip() not in ("", "no"):
        return True
    if _header(mail, "Precedence").lower() in ("bulk", "junk", "list", "auto_reply"):
        return True
    if mail.get_content_type() == "multipart/report":
        return True
    if any(mail[name] is not None for name in ("X-Autoreply", "X-Autorespond", "List-Id")):
        return True
    name = parseaddr(_header(mail, "From"))[1].lower().partition("@")[0]
    return name in ("mailer-daemon", "postmaster") or _header(mail, "Return-Path") == "<>"


def is_checked(mail: EmailMessage, sender: str, checked_by: str) -> bool:
    """Whether the named server says that the domain of From is genuine.

    Only the first header counts: a server writes its own on top, and a sender may have written
    others below. The server copies into it what the sender has chosen, for example the envelope
    address. So the header is read as it was sent, encoded words in it are not believed, quoted
    strings and comments are left out, and a second result of DMARC makes both worthless.
    """
    found = (str(v) for name, v in mail.raw_items() if name.lower() == "authentication-results")
    raw = next(found, "")
    said = _unquoted(" ".join(raw.split()).lower())
    if said is None or "=?" in raw or len(re.findall(r"dmarc\s*=", raw.lower())) != 1:
        return False
    server, *results = said.split(";")
    if server.split()[:1] != [checked_by.lower()]:
        return False
    # DMARC is the one check that is about the address in From itself.
    for result in results:
        if re.match(r"\s*dmarc=pass(?:\s|$)", result):
            domains = re.findall(r"\sheader\.from=(?:[^\s@]+@)?(\S+)", result)
            return domains == [sender.rpartition("@")[2]]
    return False


def _unquoted(header: str) -> str | None:
    """Return a header without quoted strings and comments; None if one of them has no end."""
    kept: list[str] = []
    is_quoted, depth, characters = False, 0, iter(header)
    for character in characters:
        if character == "\\" and (is_quoted or depth):
            next(characters, "")
        elif character == '"' and not depth:
            is_quoted = not is_quoted
            kept.append(" ")
        elif is_quoted:
            continue
        elif character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
            kept.append(" ")
        elif not depth:
            kept.append(character)
    return None if is_quoted or depth else "".join(kept)


def _answered(mail: EmailMessage) -> tuple[str, ...]:
    """Return the Message-IDs that a mail answers, the nearest first."""
    direct = _IDS.findall(_header(mail, "In-Reply-To"))
    earlier = _IDS.findall(_header(mail, "References"))[::-1]
    return tuple(dict.fromkeys([*direct, *earlier]))[:20]


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return str(mail[name] or "").strip()
    except (ValueError, IndexError, AttributeError):  # the parser fails on some broken headers
        return ""


def _date(mail: EmailMessage) -> datetime:
    try:
        found = parsedate_to_datetime(_header(mail, "Date"))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        return datetime.now(UTC)


def _words(mail: EmailMessage, *, is_answer: bool, is_proven: bool) -> tuple[str, str]:
    """Return the text that the author has newly written, and the mails that they forward.

    `is_answer`: the mail answers one of ours, so a mail below it is the one that it answers.
    """
    body = mail.get_body(preferencelist=("plain", "html"))
    if body is None:
        return "", ""
    try:
        text = str(body.get_content())
    except (LookupError, ValueError):  # an unknown charset
        data = body.get_payload(decode=True)
        text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    text = text[:MAX_BODY_CHARACTERS]
    if body.get_content_type() == "text/html":
        text = text_of_html(text if is_proven else text[:MAX_UNPROVEN_HTML])
    own, *forwarded = _FORWARDED.split(text.replace("\r\n", "\n"), maxsplit=1)
    own, below = split_at_headers(own)
    if not is_answer:
        forwarded.insert(0, below)
    return new_words(own), "\n\n".join(forwarded).strip()


def split_at_headers(text: str) -> tuple[str, str]:
    """Return a mail's text up to the first block of headers of another mail, and the rest.

    Such a block is three or more lines like `From:`, `Sent:`, `To:` and `Subject:`, one of which
    names a sender. Blank lines in it do not count.
    """
    lines = text.split("\n")
    first, kinds = 0, set[str | None]()
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        found = _HEADER_LINE.match(line)
        if found is None:
            kinds.clear()
            continue
        first = first if kinds else number
        kinds.add(found.lastgroup)
        if len(kinds) >= 3 and "sender" in kinds:
            return "\n".join(lines[:first]), "\n".join(lines[first:])
    return text, ""


def new_words(text: str) -> str:
    """Return a mail's text without quoted mails and without the signature."""
    kept: list[str] = []
    # The mail is read from its last line upwards. About the lines below the present one, without
    # blank ones: whether all are quoted, how many there are, and the first of them.
    is_quoted, count, following = True, 0, ""
    for line in reversed(text.split("\n")):
        is_attribution = _ATTRIBUTION.match(line) is not None
        is_end = line == "-- " or (line.strip() == "--" and count < 10)
        if is_end or (is_attribution and (is_quoted or _OUTLOOK.match(following))):
            kept.clear()
        elif not line.startswith(">") and not is_attribution:
            kept.append(line.rstrip())
        if line.strip():
            is_quoted = is_quoted and line.startswith(">")
            count, following = count + 1, line
    return re.sub(r"\n{3,}", "\n\n", "\n".join(reversed(kept))).strip()


def _files(mail: EmailMessage) -> Iterator[Attachment]:
    for number, part in enumerate(mail.iter_attachments(), 1):
        data = part.get_payload(decode=True)
        # An attached mail has no bytes of its own; it is kept as it is written.
        if part.get_content_type() == "message/rfc822":
            data = part.as_bytes()
        if not isinstance(data, bytes) or not 0 < len(data) <= MAX_FILE_BYTES:
            continue
        kind = part.get_content_type()
        yield Attachment(
            name=(part.get_filename() or f"file-{number}")[:200],
            media_type=kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream",
            data=base64.b64encode(data).decode(),
        )


def text_of_html(source: str) -> str:
    """Return the text of a mail in HTML, without quoted mails, scripts and styles."""
    reader = _HtmlText()
    reader.feed(source)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _HtmlText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = dict(attrs).get("class") or ""
        if tag in _SKIPPED or "gmail_quote" in classes:
            self._skipped.append(tag)
        elif self._skipped and tag == self._skipped[-1]:
            self._skipped.append(tag)  # the same tag inside: its end is not the end of the quote
        elif tag in _BREAKS and not self._skipped:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and tag == self._skipped[-1]:
            self._skipped.pop()
        elif tag in ("p", "div", "li") and not self._skipped:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.parts.append(data)
