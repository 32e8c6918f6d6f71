"""Engines: which process runs which queue, and when."""
