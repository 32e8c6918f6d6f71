"""Records: small values that rows, lists and messages hold."""
