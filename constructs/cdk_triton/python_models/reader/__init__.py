"""What the source of a model says, read by its syntax: nothing is imported or executed.

Also here: the names that an image's Python and its packages offer, and packed environments.
"""
