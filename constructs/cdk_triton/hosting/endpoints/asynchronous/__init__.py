"""Asynchronous endpoints: the settings, the location of requests and responses, and the permissions to use them."""
