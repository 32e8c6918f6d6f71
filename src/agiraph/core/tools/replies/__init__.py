"""Replies: the tools of a reply to a person."""
