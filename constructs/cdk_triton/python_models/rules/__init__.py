"""The rules about Python models."""
