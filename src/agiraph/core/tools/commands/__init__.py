"""Commands: the tool that runs commands, and their way to the network."""
