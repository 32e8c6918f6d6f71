"""Backup: rows and files of a home in one file, and all data of a team as readable files."""
