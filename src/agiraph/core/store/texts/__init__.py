"""Texts: rows of files, notes, knowledge and what may be found in them."""
