"""Replies: how messages of people are answered beside the work."""
