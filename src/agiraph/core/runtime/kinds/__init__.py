"""Kinds: how work of each kind runs. `WorkKind.runner` names one of the runners here, or of a
feature."""
