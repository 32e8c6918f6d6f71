"""Folders: a person's own folders and their history."""
