"""Stored accounts: makes this process use the API keys that the file of keys holds now."""

from dataclasses import replace

from agiraph import redaction
from agiraph.core.home import stored_keys
from agiraph.core.home.layout import Home
from agiraph.models.catalogue import Catalogue
from agiraph.models.vendors import VENDORS


def use(home: Home, models: Catalogue) -> None:
    """Use the stored keys with these models, and stop using keys that were removed from the file.

    The environment takes precedence: a vendor whose key is set there keeps that key.
    """
    stored = stored_keys.read(home.path)
    redaction.keep(stored.secrets)
    for vendor in VENDORS:
        account = models.registry.account(vendor)
        key = stored.keys.get(vendor.key_variable, "")
        if account.key != key and (account.is_stored or not account.key):
            used = replace(account, key=key, is_stored=bool(key))
            models.set_account(vendor.name, used)
