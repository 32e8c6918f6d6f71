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
_IDS = re.compile(r"<[^<>\s]+>")
_MEDIA_TYPE = re.compile(r"[a-z]+/[A-Za-z0-9.+-]+")
_ATTRIBUTION = re.compile(
    r"^\s*(?:On .{4,200} wrote:|Am .{4,200} schrieb .{1,200}:|Le .{4,200} a écrit\s*:"
    r"|-{2,} ?(?:Original Message|Ursprüngliche Nachricht|Message d'origine) ?-{2,}|_{10,})\s*$",
    re.IGNORECASE,
)
"""The line before a quoted mail, as common clients write it."""
_OUTLOOK = re.compile(r"^(?:From|Von|De):\s.+", re.IGNORECASE)
_FORWARDED = re.compile(
    r"^\s*(?:-{2,} ?Forwarded [Mm]essage ?-{2,}|Begin forwarded message:"
    r"|-{2,} ?Weitergeleitete Nachricht ?-{2,})",
    re.MULTILINE,
)
_SKIPPED = frozenset({"script", "style", "head", "title", "blockquote"})
_BREAKS = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "table"})


def receipt_of(message_id: str) -> str:
    """Return what is stored of a Message-ID: its hash, because the id itself is a secret."""
    return hashlib.sha256(message_id.encode()).hexdigest()[:32]


def sender_of(raw: bytes) -> str:
    """Return the address in From of a mail, or of its beginning; empty if there is none."""
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    return parseaddr(_header(mail, "From"))[1].lower()


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
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    sender = parseaddr(_header(mail, "From"))[1].lower()
    if not sender or sender == own.lower() or is_automatic(mail):
        return None
    identity = _header(mail, "Message-ID")
    key = identity or hashlib.sha256(raw).hexdigest()
    text, forwarded = _words(mail)
    # The code of a pairing stands in the subject; in other mails it only helps to file them.
    is_known = sender == paired
    files = list(_files(mail)) if is_known else []
    if forwarded and is_known:
        # Somebody else wrote it. As a file its text is labelled; the person's own text is not.
        data = base64.b64encode(forwarded.encode()).decode()
        files.insert(0, Attachment(name="forwarded.txt", media_type="text/plain", data=data))
    subject, answered = _header(mail, "Subject"), _answered(mail)
    if not is_known:
        text = f"{subject}\n{text}"
    return Incoming(
        key=key[:300],
        sender=sender,
        text=text or subject or "(An empty mail.)",
        sent_at=_date(mail),
        attachments=tuple(files[:MOST_FILES]),
        replies_to=tuple(map(receipt_of, answered)),
        is_proven=any(is_ours(each, sender) for each in answered)
        or (bool(checked_by) and is_checked(mail, sender, checked_by)),
        handle=identity[:300] if _IDS.fullmatch(identity) else "",
    )


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
    others below.
    """
    found = mail.get_all("Authentication-Results") or []
    if not found:
        return False
    said = " ".join(str(found[0]).split()).lower()
    server, _, results = said.partition(";")
    if server.split(" ")[0] != checked_by.lower():
        return False
    domain = re.escape(sender.rpartition("@")[2])
    # DMARC is the one check that is about the address in From itself.
    for result in results.split(";"):
        if re.match(r"\s*dmarc=pass\b", result):
            return re.search(rf"header\.from=(?:[^\s;@]+@)?{domain}(?:\s|$)", result) is not None
    return False


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
    except (ValueError, TypeError):
        return datetime.now(UTC)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _words(mail: EmailMessage) -> tuple[str, str]:
    """Return the text that the author has newly written, and the mails that they forward."""
    body = mail.get_body(preferencelist=("plain", "html"))
    if body is None:
        return "", ""
    try:
        text = str(body.get_content())
    except (LookupError, ValueError):  # an unknown charset
        data = body.get_payload(decode=True)
        text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    if body.get_content_type() == "text/html":
        text = text_of_html(text)
    parts = _FORWARDED.split(text.replace("\r\n", "\n"), maxsplit=1)
    return new_words(parts[0]), parts[1].strip() if len(parts) > 1 else ""


def new_words(text: str) -> str:
    """Return a mail's text without quoted mails and without the signature."""
    kept: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        rest = [later for later in lines[number + 1 :] if later.strip()]
        if line == "-- " or (line.strip() == "--" and len(rest) < 10):
            break
        if _ATTRIBUTION.match(line) and all(later.startswith(">") for later in rest):
            break
        if _ATTRIBUTION.match(line) and rest and _OUTLOOK.match(rest[0]):
            break
        if not line.startswith(">") and not _ATTRIBUTION.match(line):
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


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
