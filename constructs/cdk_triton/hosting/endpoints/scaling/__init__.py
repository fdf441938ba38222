"""Auto-scaling of a variant's instances."""
