"""Gate environment: the variables by which programs find the gate."""

from agiraph.sandbox.gate.rules import GateNetwork

_NOT_PROXIED = "127.0.0.1,localhost,::1"


def of_command(network: GateNetwork, port: int) -> dict[str, str]:
    """Return the variables of a command whose gate listens on this port of its loopback."""
    base = f"http://127.0.0.1:{port}"
    found = {
        "PIP_INDEX_URL": f"{base}/pypi/simple/",
        "PIP_CONFIG_FILE": "/dev/null",  # a person's extra indexes are asked by the gate
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_DEFAULT_INDEX": f"{base}/pypi/simple/",
        "npm_config_registry": f"{base}/npm/",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_update_notifier": "false",
        # A lock file must not name the gate, and one that names another registry is read here.
        "npm_config_omit_lockfile_registry_resolved": "true",
        "npm_config_replace_registry_host": "always",
        "CARGO_NET_GIT_FETCH_WITH_CLI": "true",
        "NODE_USE_ENV_PROXY": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "no_proxy": _NOT_PROXIED,
        "NO_PROXY": _NOT_PROXIED,
    }
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        found |= {name: base, name.upper(): base}
    if network == "packages":
        # Plain http goes through the proxy; inside of TLS the gate could not tell a clone from a
        # push, so git speaks http to the gate, and the gate https to the host.
        found |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{base}/git/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://",
        }
    return found


def cargo_settings(port: int) -> str:
    """Return the file by which cargo takes its packages from the gate: no variable can say it."""
    return (
        '[source.crates-io]\nreplace-with = "gate"\n\n'
        f'[source.gate]\nregistry = "sparse+http://127.0.0.1:{port}/cargo/index/"\n'
    )
