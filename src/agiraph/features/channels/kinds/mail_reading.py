"""Mail reading: from the bytes of an e-mail to what its author has newly written."""

import base64
import contextlib
import email
import email.policy
import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parseaddr, parsedate_to_datetime
from html.parser import HTMLParser
from itertools import islice

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.records.channels import Incoming

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
# No language is read below. What mail clients write above another mail looks alike in all of them.
_UNSEEN = re.compile(r"[\u200b-\u200f\u2060\ufeff]")
_RULE = re.compile(
    r"[^\w\n]{0,8}(?:(?:[-_=*~+] ?){4}|[\u2010-\u2015\u2500-\u257f\uff0d\uff1d\uff3f]{3}|---\s?\w)"
)
"""The beginning of a line that clients draw above another mail."""
_LABELLED = re.compile(r"[ \t*]{0,4}[^\s:\uff1a<>@][^:\uff1a<>@]{0,30}(?:(?<!\d):(?![/\\])|\uff1a)")
"""A line such as `From: …`, in any language."""
_YEAR = r"(?:19|20|\u0662\u0660|\u06f1\u06f4)\d\d"  # the last two in Arabic and Persian digits
_MOMENT = re.compile(rf"\d:\d\d|\b{_YEAR}[^\d\n]+\d|\d[^\d\n]{{1,12}}{_YEAR}\b")
"""A time, or a year beside another number: a date."""
_ADDRESS = re.compile(r"<[^<>\s@]+@[^<>\s@]+>")
_PREFIX = re.compile(
    r"(?:\[[^\[\]:]{1,20}\]|\W)*+[^\W\d]{1,3}(?:\[\d+\])?\s?[:\uff1a]|.*\((?i:fwd)\)$"
)
"""The subject of a mail that answers or forwards one: `Fwd:`, `[WG: …]`, `转发:`, `… (fwd)`."""
_PASSED_ON = ("resent-", "x-forwarded", "auto-forwarded")
HEADERS = 3
"""A block of so many labelled lines with a date or an address is the headers of another mail."""
FIRST_OF_ITS_THREAD = 22
"""Bytes of the Thread-Index of a mail that answers and forwards nothing; Outlook adds to it."""
NO_WORDS = "(A forwarded mail, with no words of its own: see forwarded.txt.)"
DRAWN_LINE = "-" * 10
_SKIPPED = frozenset({"script", "style", "head", "title"})
_BREAKS = frozenset(
    {"p", "br", "div", "tr", "li", "dl", "dt", "h1", "h2", "h3", "table", "section", "article"}
)
_CELLS = frozenset({"td", "th", "dd"})
_OTHER_MAIL = ("quote", "forward", "fwd", "cite", "appendonsend", "reference-message", "zmail_")
"""Parts of the names that clients give to the element which holds another mail."""


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
    is_derived = not is_answer and _is_derived(mail)
    text, foreign = _words(mail, is_answer=is_answer, is_derived=is_derived, is_proven=is_proven)
    if is_answer and _first_address(foreign) == own.lower():
        foreign = ""  # our own mail, which this one answers
    if is_derived and not foreign:
        text, foreign = "", text  # the client left no sign of where the other mail begins
    # The code of a pairing stands in the subject; in other mails it only helps to file them.
    is_known = sender == paired
    files = list(_files(mail)) if is_known else []
    if foreign and is_known:
        # Somebody else wrote it. As a file its text is labelled; the person's own text is not.
        data = base64.b64encode(foreign.encode()).decode()
        files.insert(0, Attachment(name="forwarded.txt", media_type="text/plain", data=data))
    subject = _header(mail, "Subject")
    if not is_known:
        text = f"{subject}\n{text}"
    return Incoming(
        key=identity or hashlib.sha256(raw).hexdigest(),
        sender=sender,
        # The subject of a mail that is passed on is somebody else's, too.
        text=text or (NO_WORDS if foreign or is_derived else subject) or "(An empty mail.)",
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


def _is_derived(mail: EmailMessage) -> bool:
    """Whether a mail that answers none of ours answers or forwards another one."""
    if _answered(mail) or any(name.lower().startswith(_PASSED_ON) for name in mail):
        return True
    with contextlib.suppress(ValueError):
        if len(base64.b64decode(_header(mail, "Thread-Index"))) > FIRST_OF_ITS_THREAD:
            return True
    return _PREFIX.match(_header(mail, "Subject")) is not None


def _words(
    mail: EmailMessage, *, is_answer: bool, is_derived: bool, is_proven: bool
) -> tuple[str, str]:
    """Return the text that the author has newly written, and what others wrote.

    `is_answer`: the mail answers one of ours; quoted lines are then left out.
    `is_derived`: it answers or forwards a mail of somebody else.
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
        text = text_of_html(text if is_proven else text[:MAX_UNPROVEN_HTML], quotes=not is_answer)
    text = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    own, below = split_at_another_mail(text, is_answer=is_answer, is_derived=is_derived)
    return new_words(own), below


def split_at_another_mail(text: str, *, is_answer: bool, is_derived: bool) -> tuple[str, str]:
    """Return a mail's text up to the first sign of another mail, and the rest.

    A sign is a drawn line, a block of headers, a line that names who wrote the text below it, or a
    quoted line. In an answer the author may write between quoted lines, and draw a line without
    words. What is taken for another mail by mistake is kept in a file.
    """
    lines = text.split("\n")
    labelled: list[int] = []
    last_words = 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if _begins_others_words(line, is_answer=is_answer) and not (
            is_answer and _is_above_quote(lines, number)
        ):
            return _split(lines, labelled[0] if len(labelled) > 1 else number)
        if _LABELLED.match(line):
            labelled = [*labelled[-9:], number]
        elif labelled and last_words > labelled[-1]:
            labelled = []  # two lines without a label; one may belong to the header above it
        last_words = number
        block = "\n".join(lines[labelled[0] : number + 1]) if labelled else ""
        if len(labelled) >= HEADERS and (
            is_derived or _MOMENT.search(block) or _ADDRESS.search(block)
        ):
            return _split(lines, labelled[0])
    return text, ""


def _is_above_quote(lines: list[str], number: int) -> bool:
    """Whether one of the next two lines with words is quoted: an author's name may need two."""
    below = islice(filter(str.strip, islice(lines, number + 1, None)), 2)
    return any(line.startswith(">") for line in below)


def _split(lines: list[str], number: int) -> tuple[str, str]:
    """Return the lines before a number, without a drawn line at their end, and the others."""
    own = lines[:number]
    while own and (not own[-1].strip() or _RULE.match(own[-1])):
        own.pop()
    return "\n".join(own), "\n".join(lines[number:]).strip()


def _begins_others_words(line: str, *, is_answer: bool) -> bool:
    """Whether a line is drawn, quoted, or names an author: `On Monday Bob <bob@x> wrote:`."""
    if _RULE.match(line):
        return not is_answer or any(character.isalpha() for character in line)
    if line.lstrip().startswith((">", "\uff1e")):
        return not is_answer
    ends = line.rstrip().endswith((":", "\uff1a"))
    has_address, has_moment = _ADDRESS.search(line), _MOMENT.search(line)
    if has_address and (ends or has_moment or _LABELLED.match(line)):
        return True
    return ends and has_moment is not None


def _first_address(text: str) -> str:
    """Return the first address in a text: that of its author, if the text is a quoted mail."""
    found = _ADDRESS.search(text)
    return "" if found is None else found[0].strip("<>").lower()


def new_words(text: str) -> str:
    """Return a mail's text without quoted mails and without the signature."""
    kept: list[str] = []
    # The mail is read from its last line upwards. About the lines below the present one, without
    # blank ones: how many there are, and whether the first of them is quoted.
    count, is_above_quote, is_attribution = 0, False, False
    for line in reversed(text.split("\n")):
        is_quoted = line.startswith(">")
        # Some clients break the line that names the author behind the address.
        is_attribution = (is_above_quote and line.rstrip().endswith((":", "\uff1a"))) or (
            is_attribution and _ADDRESS.search(line) is not None
        )
        if line == "-- " or (line.strip() == "--" and count < 10):
            kept.clear()
        elif not is_quoted and not is_attribution:
            kept.append(line.rstrip())
        if line.strip():
            count, is_above_quote = count + 1, is_quoted
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


def text_of_html(source: str, *, quotes: bool = False) -> str:
    """Return the text of a mail in HTML, without scripts and styles.

    Quoted mails are left out; with `quotes` they are kept, below a drawn line.
    """
    reader = _HtmlText(quotes=quotes)
    reader.feed(source)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _HtmlText(HTMLParser):
    def __init__(self, *, quotes: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._keeps_quotes = quotes
        self._skipped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        is_quote = tag in ("blockquote", "q") or "quote" in (found.get("class") or "")
        if self._keeps_quotes and (is_quote or _is_drawn(tag, found)) and not self._skipped:
            self.parts.append(f"\n{DRAWN_LINE}\n")
        elif tag in _SKIPPED or is_quote:
            self._skipped.append(tag)
        elif self._skipped and tag == self._skipped[-1]:
            self._skipped.append(tag)  # the same tag inside: its end is not the end of the quote
        elif not self._skipped:
            self.parts.append("\n" if tag in _BREAKS else " " if tag in _CELLS else "")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and tag == self._skipped[-1]:
            self._skipped.pop()
        elif tag in ("p", "div", "li", "section", "article") and not self._skipped:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.parts.append(data)


def _is_drawn(tag: str, attributes: dict[str, str | None]) -> bool:
    """Whether an element draws the line above another mail, or holds one."""
    style = (attributes.get("style") or "").replace(" ", "")
    names = f"{attributes.get('class')} {attributes.get('id')}".lower()
    is_marked = any(mark in names for mark in _OTHER_MAIL)
    return tag == "hr" or "border-top" in style or "border-left" in style or is_marked
