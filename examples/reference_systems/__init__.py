"""The published systems that this library started from, each as a stack of its own, and the store that they share.

A module has the stack of one system. `app.py` puts them together, and each deploys by itself.
"""
