"""Rows: the tables of research."""
