"""docs/channels.md: its settings load, and its commands pair a phone."""

import re
import tomllib
from pathlib import Path

from agiraph import config
from agiraph.testing import ManualClock
from tests.cli.shell import Shell
from tests.cli.test_commands_with_server import read_json, up
from tests.docs.blocks import blocks
from tests.runtime.bot_api import TOKEN, BotApi

DOCUMENT = "channels.md"
ADA, STRANGER = 7, 666


def test_the_channels_of_the_document_load(tmp_path: Path) -> None:
    [written] = blocks(DOCUMENT, "toml")
    (tmp_path / config.FILE).write_text(written)
    environ = {"AGIRAPH_HOME": str(tmp_path), "TELEGRAM_TOKEN": TOKEN, "MAIL_PASSWORD": "secret-12"}
    found = config.load(environ).features["channels"]
    assert {name: channel.description for name, channel in found.items()} == {
        "phone": "telegram bot 110201543",
        "mail": "email of agiraph@example.org by smtp.example.org and imap.example.org",
        "log": "terminal",
    }
    assert found["mail"].kinds == {"question", "report", "result"}


async def test_a_phone_is_paired_as_the_document_says(agiraph: Shell) -> None:
    [written] = blocks(DOCUMENT, "toml")
    phone = tomllib.loads(written)["channels"]["phone"]
    [told] = blocks(DOCUMENT, "")
    command, said = told.splitlines()
    async with BotApi(now=ManualClock().now()).open() as bot:
        entries = "\n".join(f'{key} = "{value}"' for key, value in phone.items())
        settings = f'[channels.phone]\n{entries}\napi_url = "{bot.url}"\n'
        (agiraph.home / config.FILE).write_text(settings)
        agiraph.environment["TELEGRAM_TOKEN"] = TOKEN
        async with up(agiraph):
            await bot.write(STRANGER, "Hello?")
            shown = await agiraph(*command.removeprefix("$ agiraph ").split())
            code = re.search(r"[A-Z0-9]{5}-[A-Z0-9]{5}", shown.out)
            assert code is not None
            assert shown.out == said.replace("ABCDE-FGHJK", code[0]) + "\n"
            await bot.write(ADA, f"/start {code[0]}")
            [paired] = await bot.sent(1)
            assert (paired["chat"]["id"], paired["text"].split(":")[0]) == (ADA, "Paired")
            [channel] = await read_json(agiraph, "channels")
            assert (channel["address"], channel["dropped"]) == (str(ADA), 1)
            listed = await agiraph("channels")
            assert re.search(r"phone\s+everything\s+7\s+1", listed.out)
            ended = await agiraph("channels", "unpair", "phone")
            assert ended.out == "Nobody is paired with phone any more.\n"
            wrong = await agiraph("channels", "pair", "fax")
            assert "Channels that can be paired: phone" in wrong.err
