"""Channels in the settings: an error message names the file, the channel and the setting."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.config import Setting
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.messages import INBOX
from agiraph.features.channels.kinds.configured import Terminal
from agiraph.features.channels.kinds.email import Email
from agiraph.features.channels.kinds.smtp import Smtp
from agiraph.features.channels.kinds.telegram import Telegram
from agiraph.features.channels.kinds.webhook import Webhook
from agiraph.redaction import redact
from tests.wording import Wording, refusals


def load(home: Path, written: str, **environ: str) -> config.Settings:
    (home / config.FILE).write_text(written)
    return config.load({"AGIRAPH_HOME": str(home), **environ})


def test_channels_are_read_with_their_secrets_from_the_environment(tmp_path: Path) -> None:
    written = """
        [channels.here]
        type = "terminal"
        kinds = ["question"]
        [channels.hook]
        type = "webhook"
        url = "https://example.org/in?team=1"
        secret_env = "HOOK_SECRET"
        [channels.hidden]
        type = "webhook"
        url_env = "HOOK_URL_SECRET"
        [channels.post]
        type = "smtp"
        host = "mail.example.org"
        from = "agents@example.org"
        to = ["a@example.org", "b@example.org"]
        user = "agents"
        password_env = "POST_PASSWORD"
    """
    settings = load(
        tmp_path,
        written,
        HOOK_SECRET="canary-of-the-hook",
        HOOK_URL_SECRET="https://example.org/canary-in-the-path",
        POST_PASSWORD="canary-of-the-post",
    )
    assert {name: type(channel) for name, channel in settings.features["channels"].items()} == {
        "here": Terminal, "hook": Webhook, "hidden": Webhook, "post": Smtp,
    }  # fmt: skip
    here, hook, hidden, post = settings.features["channels"].values()
    assert (here.kinds, hook.kinds) == (frozenset({"question"}), INBOX)
    assert isinstance(hook, Webhook)
    assert isinstance(hidden, Webhook)
    assert (hook.url, hook.secret) == ("https://example.org/in?team=1", "canary-of-the-hook")
    assert hidden.url == "https://example.org/canary-in-the-path"
    assert isinstance(post, Smtp)
    assert (post.port, post.security, post.password) == (587, "starttls", "canary-of-the-post")
    assert "canary" not in repr(settings)
    assert {k: v for k, v in settings.shown.items() if k.startswith("channels")} == {
        "channels.here": Setting(value="terminal", origin=config.FILE),
        "channels.hook": Setting(value="webhook at example.org (signed)", origin=config.FILE),
        "channels.hidden": Setting(value="webhook at example.org", origin=config.FILE),
        "channels.post": Setting(
            value="smtp by mail.example.org:587 (starttls) from agents@example.org to "
            "a@example.org, b@example.org",
            origin=config.FILE,
        ),
    }
    # The secret of a channel is redacted everywhere.
    assert redact("canary-of-the-hook") == "[hidden]"


SMTP = 'type = "smtp"\nhost = "h"\nfrom = "a@b.c"\nto = ["a@b.c"]\n'


BOT = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
PHONE = 'type = "telegram"\n'
MAIL = """type = "email"
address = "agents@example.org"
smtp_host = "smtp.example.org"
imap_host = "imap.example.org"
user = "agents"
"""


def test_two_way_channels_take_their_secrets_from_the_environment_or_by_name(
    tmp_path: Path,
) -> None:
    written = f"""
        [secrets]
        mailbox = "env:MAIL_PASSWORD"
        [channels.phone]
        {PHONE} token_env = "BOT_TOKEN"
        [channels.mail]
        {MAIL} password_secret = "mailbox"
        checked_by = "mx.example.org"
    """
    settings = load(tmp_path, written, BOT_TOKEN=BOT, MAIL_PASSWORD="canary-of-the-mailbox")
    phone, mail = settings.features["channels"].values()
    assert isinstance(phone, Telegram)
    assert isinstance(mail, Email)
    assert (phone.token, phone.api_url, phone.url) == (
        BOT,
        "https://api.telegram.org",
        "http://127.0.0.1:8717",
    )
    assert (mail.smtp.port, mail.imap.port, mail.password, mail.checked_by) == (
        *(587, 993, "canary-of-the-mailbox", "mx.example.org"),
    )
    assert phone.description == "telegram bot 110201543"
    assert not any(secret in repr(settings) for secret in ("canary", BOT))
    assert BOT not in redact(f"https://api.telegram.org/bot{BOT}/getMe")


WRONG_CHANNELS = [
    "",
    'type = "pigeon"',
    'type = "terminal"\ncolour = "red"',
    'type = "own:pigeon"\nto = "home"',
    'type = "terminal"\nkinds = []',
    'type = "terminal"\nkinds = ["gossip"]',
    'type = "webhook"',
    'type = "webhook"\nurl = "https://a"\nurl_env = "U"',
    'type = "webhook"\nurl = "example.org/in"',
    'type = "webhook"\nurl = "ftp://example.org"',
    'type = "webhook"\nurl = "https://"',
    'type = "webhook"\nurl = "https://a:99999/"',
    'type = "webhook"\nurl = "https://a/ b"',
    'type = "webhook"\nurl = "https://u:p@example.org"',
    'type = "webhook"\nurl = "https://a"\nsecret = "x"',
    'type = "webhook"\nurl = "https://a"\nsecret_env = "S"',
    'type = "webhook"\nurl_env = "U"',
    'type = "smtp"\nfrom = "a@b.c"\nto = ["a@b.c"]',
    'type = "smtp"\nhost = "h"\nfrom = "a"\nto = ["a@b.c"]',
    'type = "smtp"\nhost = "h"\nfrom = "a@b.c"\nto = []',
    'type = "smtp"\nhost = "h"\nfrom = "a@b.c"\nto = "a@b.c"',
    SMTP + "port = 0",
    SMTP + 'security = "some"',
    SMTP + 'user = "u"',
    SMTP + 'user = "u"\npassword_env = "P"',
    SMTP + 'user = "u"\npassword_env = "P"\nsecurity = "none"',
    PHONE,
    PHONE + 'token_secret = "bot"',
    PHONE + 'token_env = "HOME_SWEET"',
    MAIL,
    MAIL + 'password_env = "HOME_SWEET"\nimap_security = "none"',
    MAIL + 'password_env = "HOME_SWEET"\nfolder = "a\\"b"',
]


def test_a_wrong_channel_is_refused_with_its_file_and_name(
    tmp_path: Path, wording: Wording
) -> None:
    def read(entry: str) -> None:
        load(tmp_path, f"[channels.mine]\n{entry}\n", HOME_SWEET="no-token-of-any-bot")

    wording(refusals(WRONG_CHANNELS, read, Misconfigured))


def test_channels_that_are_not_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="channels are tables"):
        load(tmp_path, 'channels = ["terminal"]')
    with pytest.raises(Misconfigured, match=r"\[channels.mine\]"):
        load(tmp_path, "[channels]\nmine = 1")
