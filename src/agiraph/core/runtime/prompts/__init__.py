"""Prompts: what a model is told when its thread begins."""
