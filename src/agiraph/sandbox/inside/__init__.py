"""Inside: the supervisor of a command and what runs as process 1 of its sandbox."""
