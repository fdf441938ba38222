"""Readers of the files of tree models.

Nothing here unpickles a file: a pickle is recognised by its first bytes only, because it may run any code.
"""
