"""The error that ends a preparation on purpose."""


class PreparationError(Exception):
    """An asset cannot be prepared; the message is one sentence with the reason and the fix."""
