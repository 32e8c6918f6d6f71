"""Lists: queries for overviews, searches, counts and health checks."""
