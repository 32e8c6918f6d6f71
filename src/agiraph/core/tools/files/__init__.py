"""Files: the tools that read and write files."""
