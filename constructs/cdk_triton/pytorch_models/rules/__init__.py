"""The rules about PyTorch models."""
