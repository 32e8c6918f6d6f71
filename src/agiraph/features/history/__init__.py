"""History: what a team did, made from its stored events."""
