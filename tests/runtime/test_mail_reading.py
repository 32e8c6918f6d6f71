"""What counts of an e-mail: new words, from a person, with what their server says of them."""

from email.message import EmailMessage

import pytest

from agiraph.runtime.channels.mail_reading import (
    incoming,
    is_automatic,
    is_checked,
    new_words,
    text_of_html,
)

ADA = "ada@home.test"


def mail(text: str = "Hello", **headers: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in ({"From": ADA, "Subject": "Hi"} | headers).items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Yes.\n\nOn Mon, 5 Jan 2026 at 9:00, agiraph wrote:\n> Which?\n> 1. red", "Yes."),
        ("Yes.\n\n> Which?\nand red\n> 1. red", "Yes.\n\nand red"),
        ("Ja.\n\nAm 05.01.26 um 09:00 schrieb agiraph:\n> Welche?", "Ja."),
        ("Yes.\n-----Original Message-----\nFrom: agiraph\nWhich?", "Yes."),
        ("Yes.\n________________________________\nFrom: agiraph\nSent: Monday", "Yes."),
        ("Yes.\n-- \nAda, Director of Things", "Yes."),
        ("On Monday I wrote:\nit works", "it works"),
        ("A list:\n- one\n- two", "A list:\n- one\n- two"),
    ],
)
def test_quoted_mails_and_signatures_are_cut(text: str, words: str) -> None:
    assert new_words(text) == words


def test_html_becomes_text_without_quotes_scripts_and_styles() -> None:
    source = (
        "<html><head><title>x</title><style>p{}</style></head><body><p>Yes &amp; no.</p>"
        "<div>Really<br>so.</div><script>steal()</script>"
        '<div class="gmail_quote">On Monday <div>inner</div> wrote</div>'
        "<blockquote>Which?</blockquote>After</body></html>"
    )
    assert text_of_html(source) == "Yes & no.\n\nReally\nso.\nAfter"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"Auto_Submitted": "no"}, False),
        ({"Auto_Submitted": "auto-replied"}, True),
        ({"Auto_Submitted": "auto-generated; type=x"}, True),
        ({"Precedence": "bulk"}, True),
        ({"X_Autoreply": "yes"}, True),
        ({"List_Id": "<all.home.test>"}, True),
        ({"From": "MAILER-DAEMON@home.test"}, True),
        ({"Return_Path": "<>"}, True),
    ],
)
def test_mails_of_programs_are_recognised(headers: dict[str, str], expected: bool) -> None:
    assert is_automatic(mail(**headers)) is expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (["mx.home.test; dmarc=pass header.from=home.test"], True),
        (["mx.home.test 1; spf=pass; dmarc=pass (p=none) header.from=home.test"], True),
        (["mx.home.test; dmarc=fail header.from=home.test"], False),
        (["mx.home.test; spf=pass smtp.mailfrom=home.test; dkim=pass"], False),
        (["mx.home.test; dmarc=pass header.from=evil.home.test"], False),
        (["mx.evil.test; dmarc=pass header.from=home.test"], False),
        # Only the topmost header is the server's own; the sender may have written the others.
        (["mx.home.test; dmarc=fail", "mx.home.test; dmarc=pass header.from=home.test"], False),
        ([], False),
    ],
)
def test_only_the_named_server_vouches_for_the_address_in_from(
    results: list[str], expected: bool
) -> None:
    made = mail()
    for result in results:
        made["Authentication-Results"] = result
    assert is_checked(made, ADA, "mx.home.test") is expected


def read(made: EmailMessage, paired: str | None = ADA) -> tuple[str, list[str]]:
    found = incoming(
        made.as_bytes(), own="us@x", paired=paired, checked_by="", is_ours=lambda *_: False
    )
    assert found is not None
    return found.text, [file.name for file in found.attachments]


def test_a_forwarded_mail_is_a_file_and_strangers_files_are_not_read() -> None:
    forwarded = mail("See below.\n\n---------- Forwarded message ---------\nFrom: x\n\nPay me!")
    assert read(forwarded) == ("See below.", ["forwarded.txt"])
    attached = mail("Look")
    attached.add_attachment(b"x", maintype="text", subtype="plain", filename="a.txt")
    assert read(attached) == ("Look", ["a.txt"])
    assert read(attached, paired=None) == ("Hi\nLook", [])


def test_a_mail_in_an_unknown_charset_or_with_broken_headers_is_read_all_the_same() -> None:
    raw = b"From: ada@home.test\r\nSubject: =?x?q?=\r\nDate: nonsense\r\n"
    raw += b"Content-Type: text/plain; charset=klingon\r\n\r\nHello\r\n"
    found = incoming(raw, own="us@x", paired=ADA, checked_by="", is_ours=lambda *_: False)
    assert found is not None
    assert (found.text, found.sender, found.is_proven) == ("Hello", ADA, False)
