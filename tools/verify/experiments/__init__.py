"""The experiments: one file for each, with the constant EXPERIMENT."""
