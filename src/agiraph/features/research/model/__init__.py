"""Model: the types of research, and the check of its reports."""
