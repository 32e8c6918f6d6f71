"""Text: how texts are measured, compared, fenced and shown."""
