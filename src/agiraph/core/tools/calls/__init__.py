"""Calls: how the calls of models are read, and where tools come from."""
