"""Model tests: the last test of each model, kept as a file in the home."""

import hashlib
import logging

from pydantic import ValidationError

from agiraph.api.model_views import ModelTestView
from agiraph.domain.errors import AgiraphError
from agiraph.home.layout import Home

FOLDER = "model-tests"
LARGEST_BYTES = 100_000
log: logging.Logger = logging.getLogger("agiraph.api")


def keep(home: Home, test: ModelTestView) -> None:
    """Replace the last test of a model. A file for each model: a server and a command may write at
    the same time."""
    name = hashlib.sha256(test.model.encode()).hexdigest()[:32]
    home.folder.write(f"{FOLDER}/{name}.json", test.model_dump_json(indent=2).encode())


def kept(home: Home) -> dict[str, ModelTestView]:
    """Return the last test of each model that was tested, by the model's name.

    A file that cannot be read is logged and left as it is; the model's next test replaces it.
    """
    if not home.folder.exists(FOLDER):
        return {}
    found: dict[str, ModelTestView] = {}
    for entry in home.folder.list(FOLDER):
        path = f"{FOLDER}/{entry.name}"
        try:
            data = home.folder.read(path, limit=LARGEST_BYTES)
            test = ModelTestView.model_validate_json(data)
        except (AgiraphError, ValidationError) as error:
            log.warning("%s does not hold a valid test of a model: %s", home.path / path, error)
        else:
            found[test.model] = test
    return found
