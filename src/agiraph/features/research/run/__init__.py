"""Research: runs research jobs and their steps."""
