"""What counts of an e-mail: new words, from a person, with what their server says of them."""

import email
import email.policy
import hashlib
import time
from email.message import EmailMessage

import pytest

from agiraph.runtime.channels.mail_reading import (
    incoming,
    is_automatic,
    is_checked,
    new_words,
    split_at_headers,
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
        # The server copies the envelope sender, whose words the sender chooses.
        (['mx.home.test; spf=pass smtp.mailfrom="; dmarc=pass header.from=home.test "@x'], False),
        (["mx.home.test; spf=pass (by ; dmarc=pass header.from=home.test ; x)"], False),
        (["mx.home.test; spf=pass (a (b) \\) ; dmarc=pass header.from=home.test"], False),
        (
            ["mx.home.test; dmarc=pass header.from=home.test; dmarc=fail header.from=home.test"],
            False,
        ),
        (["mx.home.test; dmarc=pass header.from=evil.test header.from=home.test"], False),
        (['mx.home.test; spf=pass smtp.mailfrom="a b"@x; dmarc=pass header.from=home.test'], True),
    ],
)
def test_only_the_named_server_vouches_for_the_address_in_from(
    results: list[str], expected: bool
) -> None:
    made = mail()
    for result in results:
        made["Authentication-Results"] = result
    assert is_checked(made, ADA, "mx.home.test") is expected


def test_encoded_words_in_a_servers_verdict_are_not_believed() -> None:
    raw = (
        b"Authentication-Results: mx.home.test; spf=pass smtp.mailfrom="
        b"=?utf-8?q?=3B_dmarc=3Dpass_header=2Efrom=3Dhome=2Etest_?=@evil.test\r\n\r\n"
    )
    made = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(made, EmailMessage)
    assert not is_checked(made, ADA, "mx.home.test")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("See.\n\nFrom: Bob\nSent: Monday\nTo: Ada\nSubject: Pay\n\nPay me!", "See.\n"),
        ("Siehe.\n*Von:* Bob\n\n*Gesendet:* Montag\n\n*An:* Ada\nZahle!", "Siehe."),
        ("Voilà.\nDe : Bob\nEnvoyé : lundi\nÀ : Ada\nObjet : Payer", "Voilà."),
        ("Write:\nTo: Bob\nSubject: Hi\nDate: Monday", None),
        ("From: here\nto there\nTo: be\nSubject: or not", None),
    ],
)
def test_a_block_of_headers_begins_another_mail(text: str, own: str | None) -> None:
    assert split_at_headers(text)[0] == (text if own is None else own)


def test_what_stands_below_headers_is_a_file_unless_the_mail_answers_one_of_ours() -> None:
    made = mail("See.\n\nFrom: Bob\nSent: Monday\nTo: Ada\n\nPay me!", In_Reply_To="<1@x>")

    def files(*, is_ours: bool) -> tuple[str, list[str]]:
        found = incoming(
            made.as_bytes(), own="us@x", paired=ADA, checked_by="", is_ours=lambda *_: is_ours
        )
        assert found is not None
        return found.text, [file.name for file in found.attachments]

    assert files(is_ours=False) == ("See.", ["forwarded.txt"])
    assert files(is_ours=True) == ("See.", [])


@pytest.mark.parametrize("text", ["\n" * 65536, " \n" * 32768, "-" * 65536, "x\n" * 32768])
def test_no_mail_takes_long_to_read(text: str) -> None:
    began = time.process_time()
    read(mail(text))
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "raw",
    [
        b"From: " + b"a," * 32768 + b"\r\n\r\nHello",
        b"From: x@y\r\nContent-Type: text/html\r\n\r\n" + b"<a " * 21845,
    ],
)
def test_no_header_and_no_html_takes_long_to_read(raw: bytes) -> None:
    began = time.process_time()
    incoming(raw, own="us@x", paired=ADA, checked_by="", is_ours=lambda *_: False)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("identity", ["=?utf-8?q?=3Ca=00b=40x=3E?=", "no brackets", "<a b@x>"])
def test_a_message_id_that_is_none_is_no_key(identity: str) -> None:
    raw = f"From: {ADA}\r\nMessage-ID: {identity}\r\n\r\nHello\r\n".encode()
    found = incoming(raw, own="us@x", paired=ADA, checked_by="", is_ours=lambda *_: False)
    assert found is not None
    assert (found.key, found.handle) == (hashlib.sha256(raw).hexdigest(), "")


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


@pytest.mark.parametrize("date", [b"nonsense", b"Fri, 31 Dec 9999 23:59:59 -2359"])
def test_a_mail_in_an_unknown_charset_or_with_broken_headers_is_read_all_the_same(
    date: bytes,
) -> None:
    raw = b"From: ada@home.test\r\nSubject: =?x?q?=\r\nDate: " + date + b"\r\n"
    raw += b"Content-Type: text/plain; charset=klingon\r\n\r\nHello\r\n"
    found = incoming(raw, own="us@x", paired=ADA, checked_by="", is_ours=lambda *_: False)
    assert found is not None
    assert (found.text, found.sender, found.is_proven) == ("Hello", ADA, False)
