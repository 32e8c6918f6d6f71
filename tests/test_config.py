"""Settings: the environment overrides the file, the file the defaults; no secret is shown."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.config import Setting
from agiraph.core.domain.agents import Command
from agiraph.core.domain.errors import Misconfigured
from agiraph.models.facts.prices import Terms
from agiraph.models.registry import Account, Keys
from agiraph.models.servers import Server
from agiraph.sandbox.sandbox import Limits
from tests.wording import Wording, refusals

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-canary",
    "OPENAI_API_KEY": "sk-canary",
    "GEMINI_API_KEY": "AIza-canary",
    "OPENROUTER_API_KEY": "sk-or-canary",
    "DEEPSEEK_API_KEY": "sk-deep-canary",
    "MISTRAL_API_KEY": "mistral-canary",
    "XAI_API_KEY": "xai-canary",
    "GROQ_API_KEY": "gsk-canary",
}


def load(home: Path, written: str = "", **environ: str) -> config.Settings:
    if written:
        (home / config.FILE).write_text(written)
    return config.load({"AGIRAPH_HOME": str(home), **environ})


def test_keys_and_addresses_come_from_each_vendors_usual_variables(tmp_path: Path) -> None:
    addresses = {
        "ANTHROPIC_BASE_URL": "http://a",
        "OPENAI_BASE_URL": "http://o/v1",
        "GOOGLE_GEMINI_BASE_URL": "http://g",
        "OPENROUTER_BASE_URL": "http://r/v1",
        "DEEPSEEK_BASE_URL": "http://d/v1",
        "MISTRAL_BASE_URL": "http://m/v1",
        "XAI_BASE_URL": "http://x/v1",
        "GROQ_BASE_URL": "http://q/v1",
    }
    assert load(tmp_path, **KEYS, **addresses).keys == Keys(
        {
            "anthropic": Account(key="sk-ant-canary", base_url="http://a"),
            "openai": Account(key="sk-canary", base_url="http://o/v1"),
            "gemini": Account(key="AIza-canary", base_url="http://g"),
            "openrouter": Account(key="sk-or-canary", base_url="http://r/v1"),
            "deepseek": Account(key="sk-deep-canary", base_url="http://d/v1"),
            "mistral": Account(key="mistral-canary", base_url="http://m/v1"),
            "xai": Account(key="xai-canary", base_url="http://x/v1"),
            "groq": Account(key="gsk-canary", base_url="http://q/v1"),
        }
    )


@pytest.mark.parametrize(
    ("known", "model"),
    [
        ((), "demo"),
        (("GROQ_API_KEY",), "groq/openai/gpt-oss-120b"),
        (("OPENROUTER_API_KEY",), "openrouter/anthropic/claude-sonnet-5.5"),
        (("OPENROUTER_API_KEY", "GEMINI_API_KEY"), "gemini/gemini-3.8-flash"),
        (("GEMINI_API_KEY", "OPENAI_API_KEY"), "openai/gpt-6-sol"),
        (tuple(KEYS), "anthropic/claude-sonnet-5-5"),
    ],
)
def test_the_default_model_is_that_of_the_first_provider_with_a_key(
    tmp_path: Path, known: tuple[str, ...], model: str
) -> None:
    settings = load(tmp_path, **{name: KEYS[name] for name in known})

    assert settings.model == model
    assert settings.shown["AGIRAPH_MODEL"] == Setting(value=model, origin="default")


def test_a_model_in_the_file_or_environment_overrides_the_default(tmp_path: Path) -> None:
    assert load(tmp_path, 'model = "house/m"\n', **KEYS).model == "house/m"
    assert load(tmp_path, AGIRAPH_MODEL="ollama/m", **KEYS).model == "ollama/m"


def test_how_long_the_demo_takes_is_a_number_of_seconds(tmp_path: Path) -> None:
    told = [load(tmp_path, AGIRAPH_DEMO_SECONDS=text).demo_s for text in ("", "0", "2.5")]
    assert told == [None, 0.0, 2.5]
    for wrong in ("slow", "-1", "nan", "1e9"):
        with pytest.raises(Misconfigured, match="AGIRAPH_DEMO_SECONDS is "):
            load(tmp_path, AGIRAPH_DEMO_SECONDS=wrong)


def test_model_servers_come_from_the_file_and_their_keys_from_the_environment(
    tmp_path: Path,
) -> None:
    written = """
    [servers.house]
    base_url = "https://house.example/v1"
    key_env = "HOUSE_KEY"

    [servers.gpu-2]
    base_url = "http://ada:secret@gpu:8000/v1"

    [servers.ollama]
    base_url = "http://10.0.0.1:11434/v1"
    key_env = "NOT_SET"

    [servers.claude]
    base_url = "http://10.0.0.2:1"
    wire = "anthropic"
    window = 8192
    """
    settings = load(tmp_path, written, HOUSE_KEY="sk-canary")

    assert settings.keys.servers == {
        "house": Server(base_url="https://house.example/v1", key="sk-canary", key_env="HOUSE_KEY"),
        "gpu-2": Server(base_url="http://ada:secret@gpu:8000/v1"),
        "ollama": Server(base_url="http://10.0.0.1:11434/v1", key_env="NOT_SET"),
        "claude": Server(base_url="http://10.0.0.2:1", wire="anthropic", window=8192),
    }
    assert {name: s.value for name, s in settings.shown.items() if name.startswith("servers")} == {
        "servers.house": "https://house.example/v1 (key in HOUSE_KEY: set)",
        "servers.gpu-2": "http://ada:…@gpu:8000/v1",
        "servers.ollama": "http://10.0.0.1:11434/v1 (key in NOT_SET: missing)",
        "servers.claude": "http://10.0.0.2:1 (wire anthropic, window 8,192)",
    }


WRONG_SERVERS = [
    "servers = 5",
    "[servers]\nhouse = 5",
    "[servers.house]",
    '[servers.house]\nbase_url = "localhost:1"',
    '[servers.house]\nbase_url = "http://x"\nkey = "sk-1"',
    '[servers.house]\nbase_url = "http://x"\nurl = "y"',
    '[servers.house]\nbase_url = "http://x"\nkey_env = 5',
    '[servers.house]\nbase_url = "http://x"\nwire = "soap"',
    '[servers.house]\nbase_url = "http://x"\nwindow = "8k"',
    '[servers.openai]\nbase_url = "http://x"',
    '[servers."My House"]\nbase_url = "http://x"',
]


def test_a_wrong_model_server_is_refused_with_its_file_and_table(
    tmp_path: Path, wording: Wording
) -> None:
    wording(refusals(WRONG_SERVERS, lambda one: load(tmp_path, one), Misconfigured))


def test_no_secret_is_in_the_shown_settings(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        '[servers.house]\nbase_url = "http://x"\nkey_env = "HOUSE_KEY"',
        **KEYS,
        HOUSE_KEY="sk-house-canary",
        AGIRAPH_DATABASE_URL="postgresql://ada:canary@db/agiraph",
    )

    assert "canary" not in str(settings.shown) + repr(settings)
    assert {settings.shown[name].value for name in KEYS} == {"set"}
    shown = settings.shown["AGIRAPH_DATABASE_URL"]
    assert shown == Setting(value="postgresql://ada:…@db/agiraph", origin="environment")


def test_a_list_of_models_is_a_fallback_chain(tmp_path: Path) -> None:
    (tmp_path / "agiraph.toml").write_text('model = ["anthropic/a", "openai/b"]')
    assert config.load({"AGIRAPH_HOME": str(tmp_path)}).model == "anthropic/a, openai/b"


def test_context_windows_and_prices_are_read_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "agiraph.toml").write_text(
        '[models."openai/mine"]\nwindow = 5000\ninput_usd = 1\noutput_usd = 2.5\n'
    )
    prices = config.load({"AGIRAPH_HOME": str(tmp_path)}).prices
    assert prices.terms == {"openai/mine": Terms(window=5000, input_usd=1.0, output_usd=2.5)}


WRONG_MODELS = [
    "models = 3",
    '[models."x"]\nwindow = "big"',
    '[models."x"]\nsize = 3',
    "model = 3",
    "model = [1]",
]


def test_wrong_model_settings_are_refused(tmp_path: Path, wording: Wording) -> None:
    wording(refusals(WRONG_MODELS, lambda one: load(tmp_path, one), Misconfigured))


def test_command_limits_are_read_from_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "[command_limits]\nprocesses = 64\nmemory_mib = 1024")

    assert settings.limits == Limits(processes=64, memory_mib=1024)
    shown = {name: s.value for name, s in settings.shown.items() if name.startswith("command_l")}
    assert shown == {
        "command_limits.processes": "64",
        "command_limits.memory_mib": "1024",
        "command_limits.file_mib": "4096",
        "command_limits.free_disk_mib": "256",
        "command_limits.team_processes": "1024",
        "command_limits.team_memory_mib": "12288",
        "command_limits.all_processes": "2048",
        "command_limits.all_memory_mib": "16384",
    }


WRONG_LIMITS = [
    "command_limits = 5",
    "[command_limits]\nprocesses = 0",
    '[command_limits]\nfile_mib = "1"',
    "[command_limits]\nthreads = 1",
]


def test_a_wrong_command_limit_is_refused_with_its_file_and_setting(
    tmp_path: Path, wording: Wording
) -> None:
    wording(refusals(WRONG_LIMITS, lambda one: load(tmp_path, one), Misconfigured))


def test_commands_are_read_from_the_file_with_the_variables_they_may_see(tmp_path: Path) -> None:
    written = """
    [commands.claude]
    command = "claude -p \\"$(cat _task.md)\\""
    environment = ["ANTHROPIC_API_KEY", "NOT_SET"]

    [commands."my script"]
    command = " ./agent.sh "
    resumes = true
    """
    settings = load(tmp_path, written, **KEYS)

    assert settings.commands == {
        "claude": Command(
            command='claude -p "$(cat _task.md)"',
            environment={"ANTHROPIC_API_KEY": "sk-ant-canary"},
        ),
        "my script": Command(command="./agent.sh", resumes=True),
    }
    assert {name: s for name, s in settings.shown.items() if name.startswith("commands")} == {
        "commands.claude": Setting(
            value='claude -p "$(cat _task.md)" (sees ANTHROPIC_API_KEY)', origin=config.FILE
        ),
        "commands.my script": Setting(
            value="./agent.sh (resumes after a crash)", origin=config.FILE
        ),
    }
    assert "canary" not in str(settings.shown) + repr(settings) + repr(settings.commands)


WRONG_COMMANDS = [
    "commands = 5",
    "[commands]\na = 5",
    "[commands.a]",
    "[commands.a]\ncommand = 5",
    '[commands.a]\ncommand = " "',
    '[commands.a]\ncommand = "x"\nenv = ["A"]',
    '[commands.a]\ncommand = "x"\nenvironment = "A"',
    '[commands.a]\ncommand = "x"\nenvironment = {A = "sk-1"}',
    '[commands.a]\ncommand = "x"\nenvironment = [5]',
    '[commands.a]\ncommand = "x"\nresumes = "no"',
]


def test_a_wrong_command_is_refused_with_its_file_and_setting(
    tmp_path: Path, wording: Wording
) -> None:
    wording(refusals(WRONG_COMMANDS, lambda one: load(tmp_path, one), Misconfigured))


def test_proxies_are_shown_without_their_passwords(tmp_path: Path) -> None:
    found = load(tmp_path, https_proxy="http://ada:canary-of-it@proxy:3128", NO_PROXY="a.b, .c.d")

    assert {k: v for k, v in found.shown.items() if "PROXY" in k} == {
        "HTTPS_PROXY": Setting(value="http://…@proxy:3128", origin="environment"),
        "NO_PROXY": Setting(value="a.b, .c.d", origin="environment"),
    }
    assert "canary" not in repr(found)
    assert found.keys.proxies.for_url("https://api.openai.com/v1") is not None
    assert not [name for name in load(tmp_path).shown if "PROXY" in name]
