"""Core: the durable runtime of teams, agents and their work. It imports no feature."""
