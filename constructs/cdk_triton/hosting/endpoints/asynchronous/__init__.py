"""Asynchronous endpoints: the settings, where inputs and answers lie, and who may use them."""
