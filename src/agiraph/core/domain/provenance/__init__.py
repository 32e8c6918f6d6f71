"""Provenance: where texts come from, and what may be done with them."""
