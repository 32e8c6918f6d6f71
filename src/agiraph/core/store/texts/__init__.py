"""Texts: rows of files and pages, and what may be found in them."""
