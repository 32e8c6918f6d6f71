"""Attack: `agiraph up` is killed at random while clients use every part of it over HTTP."""
