"""Background: what is done beside the runs, again and again."""
