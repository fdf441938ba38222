"""The head of a plan, and TensorRT's own parser in a process of its own."""
