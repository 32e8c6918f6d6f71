"""Planted: old faults of the runtime, planted on purpose. The mutated stories must catch each."""
