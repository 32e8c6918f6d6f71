"""Named secrets: values come from variables and private files, and are redacted everywhere."""

import os
from pathlib import Path

import pytest

from agiraph import config, redaction, secret_variables
from agiraph.core.domain.errors import Conflict, Misconfigured
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets, enter, named_secrets

SETTINGS = Path("/home/agiraph.toml")
WORD = "a-long-enough-secret"


def of_file(path: Path) -> NamedSecrets:
    return named_secrets(SETTINGS, {"mail": f"file:{path}"}, {})


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_secret_comes_from_a_variable_or_a_private_file(tmp_path: Path) -> None:
    file = private(tmp_path / "mail", "in-a-private-file\n")
    written = {"weather": "env:WEATHER_WORD", "mail": f"file:{file}"}

    secrets = named_secrets(SETTINGS, written, {"WEATHER_WORD": WORD, "OTHER": "not looked at"})

    assert (secrets.get("weather"), secrets.get("mail")) == (WORD, "in-a-private-file")
    assert redaction.redact(f"{WORD} and in-a-private-file") == "[hidden] and [hidden]"
    assert WORD not in repr(secrets)


def test_a_replaced_file_counts_at_once(tmp_path: Path) -> None:
    secrets = of_file(private(tmp_path / "mail", "the-first-secret"))
    assert secrets.get("mail") == "the-first-secret"
    private(tmp_path / "mail", "the-second-secret")
    assert secrets.get("mail") == "the-second-secret"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622, 0o777])
def test_a_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    file = private(tmp_path / "mail", WORD)
    file.chmod(mode)
    with pytest.raises(Misconfigured, match=r"others can read or change .* chmod 600"):
        of_file(file).get("mail")


def test_what_cannot_be_a_secret_is_refused_with_the_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    (tmp_path / "bytes").chmod(0o600)
    said = {
        name: of_file(tmp_path / name).problem("mail").replace(str(tmp_path), "")
        for name in ("missing", "pipe", "bytes")
    }
    said["empty"] = of_file(private(tmp_path / "empty", "\n")).problem("mail")
    said["short"] = of_file(private(tmp_path / "short", "1234567")).problem("mail")
    said["unset"] = named_secrets(SETTINGS, {"w": "env:NOT_SET"}, {}).problem("w")
    said["unknown"] = NamedSecrets().problem("w")
    assert said == {
        "missing": "The secret 'mail' cannot be read from '/missing': No such file or directory.",
        "pipe": "The secret 'mail': '/pipe' is not a regular file.",
        "bytes": "The secret 'mail': '/bytes' is not text.",
        "empty": f"The secret 'mail': '{tmp_path}/empty' must hold one text of at most 64 KiB.",
        "short": "The secret 'mail' is shorter than 8 characters, too short to be kept out of "
        "logs and threads; use a longer one.",
        "unset": "The secret 'w' is empty: set NOT_SET.",
        "unknown": "There is no secret 'w': write NAME = \"env:VARIABLE\" or NAME = "
        '"file:/path/to/a/file" into [secrets] of agiraph.toml.',
    }


@pytest.mark.parametrize(
    "value", [WORD, f"literal:{WORD}", "env:", "env: ", "file:relative/path", "file:", 5, ["x"], {}]
)
def test_a_secret_in_the_settings_file_itself_is_refused_and_not_repeated(value: object) -> None:
    with pytest.raises(Misconfigured, match="never the secret itself") as refused:
        named_secrets(SETTINGS, {"mail": value}, {})
    assert WORD not in str(refused.value)


def test_the_settings_show_where_a_secret_is_and_never_its_value(tmp_path: Path) -> None:
    (tmp_path / config.FILE).write_text('[secrets]\nweather = "env:WEATHER_WORD"\n')

    settings = config.load({"AGIRAPH_HOME": str(tmp_path), "WEATHER_WORD": WORD})

    assert settings.secrets.get("weather") == WORD
    assert settings.shown["secrets.weather"].value == "env:WEATHER_WORD"
    assert WORD not in repr(settings)


def test_a_variable_that_the_settings_name_leaves_the_environment_of_the_process(
    tmp_path: Path,
) -> None:
    """Whatever its name: /proc shows the environment that a process was started with."""
    (tmp_path / config.FILE).write_text(
        '[secrets]\nweather = "env:WEATHER_WORD"\nmail = \'env:MAIL_WORD\'\npath = "env:PATH"\n'
        '[servers.own]\nkey_env = "OWN_WORD"\n'
    )
    environ = {"AGIRAPH_HOME": str(tmp_path), "PATH": "/bin", "OTHER": "stays", "EMPTY_KEY": ""}
    named = dict.fromkeys(("WEATHER_WORD", "MAIL_WORD", "OWN_WORD"), WORD)

    left = secret_variables.hand_over({**environ, **named})

    assert left is not None
    assert secret_variables.taken_over(int(left.pop(secret_variables.PIPE_VARIABLE))) == named
    assert left == environ


def test_an_entered_secret_is_handed_out_by_its_name_at_once(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home")
    known = named_secrets(home.path / "agiraph.toml", {"w": "env:W"}, {"W": "not-the-same"})
    assert not known.knows("bank")
    enter(home, known, "bank", "我家的猫叫小黑不叫小白")
    assert (known.knows("bank"), known.get("bank")) == (True, "我家的猫叫小黑不叫小白")
    assert redaction.redact("密码 我家的猫叫小黑不叫小白") == "密码 [hidden]"
    assert (home.path / "keys.json").stat().st_mode & 0o777 == 0o600
    with pytest.raises(Conflict, match="has a secret 'w' already"):
        enter(home, known, "w", "another-long-one")
