"""Doctor: the health checks of `agiraph doctor` and of the web UI's Operations page."""
