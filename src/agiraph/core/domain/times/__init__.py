"""Times: moments, time zones, schedules."""
